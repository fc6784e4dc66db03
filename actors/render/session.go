package render

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/class"
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

// session is a renderer's side of VPP: whether VPP is connected, when it may be asked again, and
// why it should be read.
type session struct {
	config *Config
	name   string // of the renderer
	link   *messages.LinkState
	boot   string // of the VPP that was connected last
	// why a read of VPP is wanted although its content is believed to be known; "" = it is not
	verify        string
	reread        time.Time // VPP is not read for verify before
	driftCheckDue time.Time // since when a drift check is due; zero = none is
	// VPP was modified outside of the agent; until it is repaired the node is not ready
	damaged    bool
	programmed bool // everything has been programmed once in this incarnation
	// when the read began after which everything is being programmed; zero = none
	full        time.Time
	delayed     time.Time // nothing is sent to VPP before
	refused     error     // the last settings, or read, that VPP refused
	refusals    int       // how often in a row
	readRefused bool      // it was a read
}

// linkChanged takes the state of the connection. lost says that what VPP holds is not known any
// more, restarted that it is another VPP.
func (s *session) linkChanged(m *messages.LinkState) (lost, restarted bool) {
	if m.GetSession() < s.link.GetSession() {
		return false, false
	}
	lost = m.GetSession() != s.link.GetSession() || !m.GetUp()
	if lost {
		s.delayed, s.refused, s.refusals = time.Time{}, nil, 0
	}
	s.link = m
	if restarted = m.GetUp() && m.GetBoot() != s.boot; restarted {
		s.boot = m.GetBoot()
	}
	return lost, restarted
}

// open reports whether something may be sent to VPP now.
func (s *session) open(now time.Time) bool { return s.link.GetUp() && !s.delayed.After(now) }

// doubtful reports whether VPP should be read before anything else is done, although its content is
// believed to be known.
func (s *session) doubtful(now time.Time) bool {
	return s.verify != "" && !s.reread.After(now) || !s.driftCheckDue.IsZero() && now.Sub(s.driftCheckDue) >= s.config.DriftCheckOverdue
}

// ask has VPP read for a reason. A drift check waits until nothing else is to be done.
func (s *session) ask(m *messages.Verify, now time.Time) {
	switch {
	case !m.GetRoutine():
		s.verify = m.GetReason()
	case s.driftCheckDue.IsZero():
		s.driftCheckDue = now
	}
}

// reading says why VPP is being read, and that it need not be for the same reason again.
func (s *session) reading(known bool) (reason string) {
	reason, s.verify, s.driftCheckDue = s.verify, "", time.Time{}
	switch {
	case !known:
		return reasonUnknown
	case reason == "":
		return reasonDriftCheck
	default:
		return reason
	}
}

// readFailed has VPP read again: after a while, or when it is connected.
func (s *session) readFailed(c *runtime.Context, known bool, reason string, err error) {
	if known {
		s.verify = reason
	}
	if class.Lost(err) {
		s.delayed = c.Now().Add(s.config.Backoff)
		return // the link reports the next connection
	}
	s.refuse(c, fmt.Errorf("read VPP: %w", err))
	s.readRefused = true
}

// refuse has VPP left alone for a growing while.
func (s *session) refuse(c *runtime.Context, err error) {
	s.refusals++
	delay := s.config.backoff().DelayFor(s.name, s.refusals)
	if news := s.refused == nil || s.refused.Error() != err.Error(); news {
		c.Logger().Warn("VPP refused settings or a read, retrying", "err", err)
	}
	s.refused, s.delayed, s.readRefused = err, c.Now().Add(delay), false
	report.Event(c, &messages.Event{Kind: "render", Object: s.name, Text: "VPP refused, retrying in " + delay.String(), Error: err.Error()})
}

// accepted notes that VPP does what it is asked for.
func (s *session) accepted() { s.refused, s.refusals = nil, 0 }

// readAccepted notes that VPP could be read. Settings that it refused are not accepted by that.
func (s *session) readAccepted() {
	if s.readRefused {
		s.accepted()
	}
}

// method says what kind of event the renderer is at.
func (s *session) method() messages.Method {
	switch {
	case !s.programmed:
		return messages.Method_METHOD_FULL_RESYNC
	case !s.full.IsZero() || s.damaged:
		return messages.Method_METHOD_DOWNSTREAM_RESYNC
	}
	return messages.Method_METHOD_UPDATE
}

// synced reports how long a pass took: a full one from the beginning of the read of VPP until
// nothing is left to do, an incremental one from the beginning of its batch.
func (s *session) synced(c *runtime.Context, began time.Time, left int) {
	full := !s.full.IsZero()
	switch {
	case full && left > 0:
		return
	case full:
		began, s.full = s.full, time.Time{}
	}
	s.config.Observer.Synced(s.name, c.Now().Sub(began), full)
}

// purpose marks a drift check, so that it is not taken for the consequence of an event.
func purpose(ctx context.Context, reason string) context.Context {
	if reason == reasonDriftCheck {
		return link.Routine(ctx)
	}
	return ctx
}
