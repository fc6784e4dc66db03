package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// condition is what keeps a renderer from being in sync: words that do not change while it lasts,
// and the details, which are only worked out when they are reported. The zero value is none.
type condition struct {
	cause   string
	details func() string // nil: the cause says it all
	reach   messages.Reach
	partial bool // all else is served
}

// Causes that keep renderers from being in sync.
const (
	causeLink       = "no connection to VPP"
	causeRefused    = "VPP refused"
	causeServices   = "the services are not known yet"
	causeSilent     = "services have not rendered"
	causeInterfaces = "VPP's interfaces are not known yet"
	causeFailed     = "refused by VPP"
	causeWork       = "being programmed"
	causeSettings   = "settings and interfaces are being programmed"
	causeLeftovers  = "objects of earlier runs are being removed"
	causeInSync     = "in sync"
)

// report reports the health of the renderer when it has changed. With a warning it is in sync
// nevertheless.
func (d *Driver[K]) report(c *runtime.Context) {
	settled := d.adapter.Settings()
	if d.resting() && settled {
		d.session.damaged, d.session.programmed = false, d.session.programmed || d.opened
	}
	warning := cmp.Or(d.shortage(), d.adapter.Warning())
	if warning != d.told {
		d.told, d.cause = warning, ""
		d.observeMemory()
	}
	switch {
	case warning != "":
	case d.barrier.begun.GetProvisional():
		warning = report.FromMirror
	case d.fromMirror():
		d.cause = "" // the warning has to go
	}
	is := d.condition(settled)
	h := &d.health
	h.Reach, h.Partial = is.reach, is.partial
	if is.cause == d.cause && h.Interfaces == h.Last.GetInterfaces() && h.RefusedSet == h.Last.GetRefusedSet() {
		return
	}
	d.cause = is.cause
	d.health.Partial = d.health.Partial && (is.cause != causeFailed || !d.refusesAll())
	ok, reason := is.cause == causeInSync, is.cause
	switch {
	case ok:
		reason = warning
	case is.details != nil:
		reason = is.details()
	}
	if !d.health.Current(ok, reason) {
		d.health.Report(c, ok, reason, c.Incarnation())
	}
}

// fromMirror reports whether the renderer was last in sync with what the local mirror says, and not
// with the cluster.
func (d *Driver[K]) fromMirror() bool { return d.health.Last.GetReason() == report.FromMirror }

// resting reports whether nothing is left to do. On a provisional list what waits for the barrier
// does not count.
func (d *Driver[K]) resting() bool {
	return d.queue.Pending() == 0 || d.barrier.begun.GetProvisional() && d.known && d.work == nil && d.queue.next.empty()
}

// condition is the first thing that is not as it should be. Once in sync, ordinary changes do not
// take readiness away: VPP holds what was wanted a moment ago. What was modified outside of the
// agent does.
func (d *Driver[K]) condition(settled bool) condition {
	const downstream = messages.Reach_REACH_DOWNSTREAM
	unready := !d.health.Last.GetOk() || d.session.damaged || d.fromMirror()
	switch {
	case !d.session.link.GetUp():
		return condition{cause: causeLink}
	case !d.known:
		return condition{cause: reasonUnknown, details: d.unknown, reach: downstream}
	case d.session.refused != nil:
		return condition{cause: causeRefused, details: d.session.refused.Error, reach: downstream}
	case d.barrier.begun == nil:
		return condition{cause: causeServices, reach: messages.Reach_REACH_UPSTREAM}
	case len(d.barrier.awaited) > 0:
		return condition{causeSilent, d.silent, messages.Reach_REACH_OBJECT, true}
	case !d.located():
		return condition{cause: causeInterfaces}
	case len(d.queue.failed) > d.queue.short:
		return condition{causeFailed, d.failures, messages.Reach_REACH_OBJECT, true}
	case !d.resting() && unready:
		return condition{causeWork, d.working, d.progress(), true}
	case !settled && unready:
		return condition{cause: causeSettings, reach: downstream}
	case d.swept < Passed && unready && !d.barrier.begun.GetProvisional():
		return condition{cause: causeLeftovers, reach: downstream}
	}
	return condition{cause: causeInSync}
}

// unknown says why it is not known what VPP holds, as far as there is more to say.
func (d *Driver[K]) unknown() string {
	if d.session.refused != nil {
		return reasonUnknown + ": " + d.session.refused.Error()
	}
	return reasonUnknown
}

// working says how much is to be done.
func (d *Driver[K]) working() string {
	return fmt.Sprintf("%d %s are %s", d.queue.Pending(), d.noun, causeWork)
}

// progress is the reach of work: as long as VPP comes to hold what is wanted, however much that is,
// nothing is wrong as a whole.
func (d *Driver[K]) progress() messages.Reach {
	if d.advanced || d.advances {
		return messages.Reach_REACH_OBJECT
	}
	return messages.Reach_REACH_DOWNSTREAM
}

// refusesAll reports whether VPP holds nothing of what services want of this renderer, which serves
// their packets.
func (d *Driver[K]) refusesAll() bool {
	if !d.givesRoles {
		return false
	}
	for key := range d.subscribers {
		for _, k := range d.adapter.Objects(key) {
			if !d.queue.Dirty(k) && d.adapter.Wanted(k) {
				return false
			}
		}
	}
	return true
}

// silent says which services are awaited.
func (d *Driver[K]) silent() string {
	return fmt.Sprintf("%d %s, first %s", len(d.barrier.awaited), causeSilent, slices.Min(slices.Collect(maps.Keys(d.barrier.awaited))))
}

// failures says what VPP refused.
func (d *Driver[K]) failures() string {
	k, err := d.queue.firstFailure()
	return fmt.Sprintf("%d %s %s, first %s: %v", len(d.queue.failed)-d.queue.short, d.noun, causeFailed, k, err)
}
