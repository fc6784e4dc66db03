package actors

import (
	"errors"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// outlet is a renderer's side of VPP: whether VPP is there, when it may be asked again, and why it should be read. Every renderer embeds
// one.
type outlet struct {
	deps    *Deps
	object  string // the renderer, in journal and metrics
	link    *messages.LinkState
	boot    string    // of the last VPP that was there
	verify  string    // why a read of VPP is wanted although we believe to know it; "" = it is not
	retell  bool      // after the next read, every service is told where it stands, whether it has been told or not
	damaged bool      // what was read was not what we knew; until it is repaired we are not ready
	once    bool      // everything has been programmed once in this life
	full    time.Time // when the read began after which everything is being programmed; zero = none
	delayed time.Time // nothing is sent to VPP before
	reread  time.Time // VPP is not read for verify before
	vigil   vigil     // when it is read although nobody wants that
	wake    func()    // cancels the timer of the vigil; nil = there is none
	probing bool      // a probeTick is under way
	refused error     // the last operation on no single thing, or read, that VPP refused
	refusal int       // how often in a row
	unread  bool      // it was a read
}

func newOutlet(d *Deps, object string) outlet {
	return outlet{deps: d, object: object, link: &messages.LinkState{}, vigil: newVigil(d.Timing)}
}

// linkChanged reports whether what VPP holds is not known any more, because the connection is another one, and whether what VPP refused
// means nothing any more, because it is another VPP.
func (o *outlet) linkChanged(m *messages.LinkState) (lost, reborn bool) {
	if m.GetSession() < o.link.GetSession() {
		return false, false // overtaken
	}
	lost = m.GetSession() != o.link.GetSession() || !m.GetUp()
	if lost {
		o.delayed, o.refused, o.refusal = time.Time{}, nil, 0
	}
	o.link = m
	if reborn = m.GetUp() && m.GetBoot() != o.boot; reborn {
		o.boot = m.GetBoot()
	}
	return lost, reborn
}

// open reports whether something may be sent to VPP now.
func (o *outlet) open(c *runtime.Context) bool { return o.link.GetUp() && !o.delayed.After(c.Now()) }

// doubts reports whether VPP should be read now although we believe to know it.
func (o *outlet) doubts(c *runtime.Context) bool {
	return o.verify != "" && !o.reread.After(c.Now()) || o.vigil.overdue(c.Now())
}

// asked has VPP read for a reason that somebody has given. The audit gives none: for it VPP is read when its turn comes, and then everybody is
// told what became of him.
func (o *outlet) asked(m *messages.Verify) {
	if o.retell = true; m.GetReason() != reasonAudit {
		o.verify = m.GetReason()
	}
}

// rest waits a while after a reading that began at an instant, until VPP is read again for no reason.
func (o *outlet) rest(c *runtime.Context, began time.Time) {
	if o.wake != nil {
		o.wake()
	}
	o.vigil.looked(began, c.Now())
	o.wake = c.After(o.vigil.pause, &vigilTick{})
}

// reading tells why VPP is being read, and that it need not be for the same reason again.
func (o *outlet) reading(known bool) (reason string) {
	reason, o.verify = o.verify, ""
	switch {
	case !known:
		return causeUnknown
	case reason == "":
		return reasonAudit
	default:
		return reason
	}
}

// readFailed has VPP read again: after a while, or when it is back.
func (o *outlet) readFailed(c *runtime.Context, known bool, reason string, err error) {
	if known {
		o.verify = reason
	}
	if lost(err) {
		o.delayed = c.Now().Add(o.deps.Timing.Backoff)
		return // the link will tell
	}
	o.refuse(c, fmt.Errorf("read VPP: %w", err))
	o.unread = true
}

// lost reports whether an error only says that the connection has ended.
func lost(err error) bool {
	k, _ := classify(err)
	return k == classWait || errors.Is(err, link.ErrUnknown)
}

// refuse waits a growing while before VPP is asked for anything again.
func (o *outlet) refuse(c *runtime.Context, err error) {
	delay := spread(delayAfter(o.refusal, o.deps.Timing.Backoff), o.object, o.refusal)
	o.refused, o.delayed, o.unread = err, c.Now().Add(delay), false
	o.refusal++
	c.Logger().Warn("VPP refused", "err", err, "retry", delay)
	record(c, &messages.Event{Kind: "render", Object: o.object, Text: "VPP refused, retrying in " + delay.String(), Error: err.Error()})
}

// accepted notes that VPP does what it is asked for.
func (o *outlet) accepted() { o.refused, o.refusal = nil, 0 }

// readAccepted notes that VPP could be read. What it refused besides is not accepted by that, and not asked for sooner.
func (o *outlet) readAccepted() {
	if o.unread {
		o.accepted()
	}
}

// drifted counts what VPP did not hold as we knew.
func (o *outlet) drifted(n int) {
	if n > 0 && o.deps.Observer != nil {
		o.deps.Observer.Drifted(o.object, n)
	}
}

// outcome sums up what became of a batch.
type outcome[K thing] struct {
	refused map[K]error
	global  error // of the last operation that is not about one thing
	done    int
	failed  int
	unknown int  // without an answer
	unsent  int  // never left this process
	doubt   bool // VPP holds something else than we thought
}

// take enters the result of one operation, which is about the thing k unless that is nil, and reports whether VPP has carried it out.
func (o *outcome[K]) take(k *K, what fmt.Stringer, err error, unknown bool) bool {
	class, _ := classify(err)
	switch {
	case class == classNone:
		o.done++
		o.doubt = o.doubt || unknown
		return true
	case errors.Is(err, link.ErrUnknown):
		o.unknown++
		return false
	case class == classWait:
		o.unsent++
		return false
	case k != nil:
		if o.refused == nil {
			o.refused = map[K]error{}
		}
		if first := o.refused[*k]; first == nil || errors.Is(first, nat44.ErrSkipped) { // what was refused after it may only follow from it
			o.refused[*k] = err
		}
	default:
		o.global = fmt.Errorf("%s: %w", what, err)
	}
	o.failed++
	o.doubt = o.doubt || unknown || class == classResync
	return false
}

// conclude draws the consequences of a batch for the next one; stubborn says that something in it was refused again and again.
func conclude[K thing](c *runtime.Context, out *outlet, o outcome[K], stubborn bool) {
	if out.deps.Observer != nil {
		out.deps.Observer.Operations(out.object, o.done, o.failed, o.unknown+o.unsent)
	}
	switch {
	case o.unknown+o.unsent > 0:
		out.delayed = c.Now().Add(out.deps.Timing.Backoff) // the link will tell of another session, which ends the wait
	case o.global != nil:
		out.refuse(c, o.global)
	default:
		out.accepted()
	}
	if o.doubt || stubborn || o.global != nil {
		if o.global == nil && out.verify == "" {
			heal(c, out.object, rungObject, 1)
		}
		out.verify, out.reread = "VPP refused an operation", c.Now()
		if !o.doubt {
			out.reread = c.Now().Add(out.deps.Timing.Backoff) // not after every one of many
		}
	}
}

// synced tells how long a pass took: a full one from the beginning of the read of VPP until nothing is left to do, an incremental one from
// the beginning of its batch.
func (o *outlet) synced(c *runtime.Context, began time.Time, left int) {
	full := !o.full.IsZero()
	switch {
	case full && left > 0:
		return
	case full:
		began, o.full = o.full, time.Time{}
	}
	if o.deps.Observer != nil {
		o.deps.Observer.Synced(o.object, c.Now().Sub(began), full)
	}
}
