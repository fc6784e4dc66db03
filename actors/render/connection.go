package render

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Reasons why VPP is read.
const (
	reasonDriftCheck = "periodic drift check"
	reasonUnknown    = "what VPP holds is not known"
)

// connection is a renderer's side of the connection to VPP: whether it is up, when a request may be
// sent, and why VPP should be read. It is plain data of the driver's actor.
type connection struct {
	// Set by New, read-only.
	config *Config
	name   string // of the renderer

	// The link: changed by linkChanged only.
	link   *messages.LinkState
	untold bool   // the link has not said yet whether VPP is connected
	boot   string // of the VPP that was connected last

	// Reads that are due although the content of VPP is believed to be known: changed by ask,
	// reading, readFailed and conclude, and by kinds (Progress.Read).
	verify        string    // the reason; "" = none is due
	reread        time.Time // no read for verify begins before
	driftCheckDue time.Time // since when a drift check is due; zero = none is

	// Schedule of the drift checks: changed by checkAfter and rest.
	took   time.Duration // of the last reading
	cancel func()        // of the timer of the next check

	// Refused settings and reads: changed by refuse and accepted, and by linkChanged.
	refused     error     // the last refusal; nil = VPP accepted the last settings and read
	refusals    int       // how often in a row
	readRefused bool      // refused is about a read
	delayed     time.Time // nothing is sent to VPP before

	// Passes: changed by read.go, condition.go and synced.
	damaged    bool // VPP was modified outside of the agent and is not repaired: not ready
	programmed bool // everything has been programmed once in this incarnation
	// the last reading with differences, until they are repaired; nil = there are none
	repair *messages.Verified
	// when the read began after which everything is being programmed; zero = none
	full time.Time
}

// exchange is one read, or one batch, under way with VPP. At most one is under way at a time.
type exchange struct {
	connection uint64 // connection.number at its beginning
	began      time.Time
	reason     string // of a read
}

// number identifies the present connection. Results of an earlier one are ignored.
func (n *connection) number() uint64 { return n.link.GetSession() }

// linkChanged takes the state of the connection. lost reports that the content of VPP is not known
// any more, restarted that VPP is another process.
func (n *connection) linkChanged(m *messages.LinkState) (lost, restarted bool) {
	if m.GetSession() < n.number() {
		return false, false
	}
	n.untold = false
	lost = m.GetSession() != n.number() || !m.GetUp()
	if lost {
		n.delayed, n.refused, n.refusals = time.Time{}, nil, 0
	}
	n.link = m
	if restarted = m.GetUp() && m.GetBoot() != n.boot; restarted {
		n.boot = m.GetBoot()
	}
	return lost, restarted
}

// open reports whether a request may be sent to VPP now.
func (n *connection) open(now time.Time) bool { return n.link.GetUp() && !n.delayed.After(now) }

// doubtful reports whether VPP should be read before other work, although its content is believed
// to be known.
func (n *connection) doubtful(now time.Time) bool {
	return n.verify != "" && !n.reread.After(now) || !n.driftCheckDue.IsZero() && now.Sub(n.driftCheckDue) >= n.config.DriftCheckOverdue
}

// ask notes that VPP should be read. A drift check waits until no other work is left.
func (n *connection) ask(m *messages.Verify, now time.Time) {
	switch {
	case !m.GetRoutine():
		n.verify = m.GetReason()
	case n.driftCheckDue.IsZero():
		n.driftCheckDue = now
	}
}

// checkAfter schedules the next drift check and replaces the earlier time. VPP does not report
// changes by other programs.
func (n *connection) checkAfter(c *runtime.Context, d time.Duration) {
	if n.cancel != nil {
		n.cancel()
	}
	n.cancel = c.After(d, &messages.Verify{Routine: true})
}

// DriftCheckLeast and DriftCheckMost bound the time between two drift checks unless a configuration
// says otherwise.
const DriftCheckLeast, DriftCheckMost = 45 * time.Second, time.Minute

// A reading may take one share-th of the time, because VPP answers under a barrier that stops its
// workers. The first overhead of it does not count: the requests travel that long, one after the
// other, while VPP 25.10 with next to no rows is busy for a fraction of it.
const (
	share    = 1000
	overhead = time.Millisecond
)

// rest returns the time between a reading and the next drift check. It depends on the shorter one
// of the last two readings: a longer one has waited for something else than VPP, for example a
// processor.
func (n *connection) rest(took time.Duration) time.Duration {
	cost := min(took, n.took) - overhead
	n.took = took
	return min(max(share*cost, n.config.DriftCheckLeast), n.config.DriftCheckMost)
}

// reading returns why VPP is being read, and clears the reasons.
func (n *connection) reading(known bool) (reason string) {
	reason, n.verify, n.driftCheckDue = n.verify, "", time.Time{}
	switch {
	case !known:
		return reasonUnknown
	case reason == "":
		return reasonDriftCheck
	default:
		return reason
	}
}

// readFailed repeats a read: after a delay, or on the next connection.
func (n *connection) readFailed(c *runtime.Context, known bool, reason string, err error) {
	if known {
		n.verify = reason
	}
	if link.Lost(err) {
		n.delayed = c.Now().Add(n.config.Backoff)
		return // the link reports the next connection
	}
	n.refuse(c, fmt.Errorf("read VPP: %w", err))
	n.readRefused = true
}

// refuse notes a refusal. The delay until the next request grows with each refusal in a row.
func (n *connection) refuse(c *runtime.Context, err error) {
	n.refusals++
	delay := n.config.backoff().DelayFor(n.name, n.refusals)
	if news := n.refused == nil || n.refused.Error() != err.Error(); news {
		c.Logger().Warn("VPP refused settings or a read, retrying", "err", err)
	}
	n.refused, n.delayed, n.readRefused = err, c.Now().Add(delay), false
	report.Event(c, &messages.Event{Kind: "render", Object: n.name, Text: "VPP refused, retrying in " + delay.String(), Error: err.Error()})
}

// accepted ends the refusals in a row.
func (n *connection) accepted() { n.refused, n.refusals = nil, 0 }

// method says whether the present operations belong to a resync or an update.
func (n *connection) method() messages.Method {
	switch {
	case !n.programmed:
		return messages.Method_METHOD_FULL_RESYNC
	case !n.full.IsZero() || n.damaged:
		return messages.Method_METHOD_DOWNSTREAM_RESYNC
	}
	return messages.Method_METHOD_UPDATE
}

// synced reports how long a pass took. A full pass begins with the read of VPP and ends when
// nothing is left to do; an incremental one begins with its batch.
func (n *connection) synced(c *runtime.Context, began time.Time, left int) {
	full := !n.full.IsZero()
	switch {
	case full && left > 0:
		return
	case full:
		began, n.full = n.full, time.Time{}
	}
	n.config.Observer.Synced(n.name, c.Now().Sub(began), full)
}

// purpose marks a drift check, so that it is not taken for the consequence of an event.
func purpose(ctx context.Context, reason string) context.Context {
	if reason == reasonDriftCheck {
		return link.Routine(ctx)
	}
	return ctx
}
