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

// condition is what keeps a renderer from being in sync. Its cause does not change while it lasts;
// its details are computed for a report. The zero value is no condition.
type condition struct {
	cause   string
	details func() string // nil: the cause says it all
	reach   messages.Reach
	partial bool // all other objects are served
}

// Causes that keep renderers from being in sync.
const (
	causeStart      = "it has just started"
	causeLink       = "no connection to VPP"
	causeRefused    = "VPP refused"
	causeBarred     = "VPP belongs to others"
	causeServices   = "the services are not known yet"
	causeSilent     = "services have not rendered"
	causeInterfaces = "VPP's interfaces are not known yet"
	causeFailed     = "refused by VPP"
	causeWork       = "being programmed"
	causeSettings   = "settings and interfaces are being programmed"
	causeLeftovers  = "objects of earlier runs are being removed"
	causeInSync     = "in sync"
)

// report reports the health of the renderer when it has changed. A renderer with a warning is in
// sync.
func (d *Driver[K]) report(c *runtime.Context) {
	state := d.kind.State()
	if d.resting() && state.Settings {
		d.connection.damaged, d.connection.programmed = false, d.connection.programmed || d.opened
		d.repaired(c)
	}
	warning := cmp.Or(d.shortage(), state.Warning)
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
	is := d.condition(&state)
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

// resting reports whether nothing is left to do. On a provisional list, objects that wait for the
// barrier do not count.
func (d *Driver[K]) resting() bool {
	return d.queue.Pending() == 0 || d.barrier.begun.GetProvisional() && d.known && d.exchange == nil && d.queue.next.empty()
}

// condition returns the first condition that applies. After the first sync, ordinary changes do not
// take readiness away: VPP holds what was wanted a moment ago. A modification outside of the agent
// takes readiness away.
func (d *Driver[K]) condition(state *State[K]) condition {
	const downstream = messages.Reach_REACH_DOWNSTREAM
	unready := !d.health.Last.GetOk() || d.connection.damaged || d.fromMirror()
	switch {
	case d.connection.untold:
		return condition{cause: causeStart}
	case !d.connection.link.GetUp():
		return condition{cause: causeLink}
	case !d.known:
		return condition{cause: reasonUnknown, details: d.unknown, reach: downstream}
	case d.connection.refused != nil:
		return condition{cause: causeRefused, details: d.connection.refused.Error, reach: downstream}
	case state.Barred != "":
		return condition{cause: causeBarred, details: func() string { return state.Barred }}
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
	case !state.Settings && unready:
		return condition{cause: causeSettings, reach: downstream}
	case d.swept < Passed && unready && !d.barrier.begun.GetProvisional():
		return condition{cause: causeLeftovers, reach: downstream}
	}
	return condition{cause: causeInSync}
}

// unknown adds the refusal, if there is one, to reasonUnknown.
func (d *Driver[K]) unknown() string {
	if d.connection.refused != nil {
		return reasonUnknown + ": " + d.connection.refused.Error()
	}
	return reasonUnknown
}

// working counts the objects that are being programmed.
func (d *Driver[K]) working() string {
	return fmt.Sprintf("%d %s are %s", d.queue.Pending(), d.noun, causeWork)
}

// progress is the reach of unfinished work: while objects reach VPP, however many there are, VPP as
// a whole is well.
func (d *Driver[K]) progress() messages.Reach {
	if d.advanced || d.advances {
		return messages.Reach_REACH_OBJECT
	}
	return messages.Reach_REACH_DOWNSTREAM
}

// refusesAll reports whether no wanted object of a renderer that serves packets is in VPP.
func (d *Driver[K]) refusesAll() bool {
	if !d.givesRoles {
		return false
	}
	for key := range d.subscribers {
		for _, k := range d.wishes.Objects(key) {
			if !d.queue.Dirty(k) && d.kind.Next(k).Wanted {
				return false
			}
		}
	}
	return true
}

// silent names the first awaited service and counts them.
func (d *Driver[K]) silent() string {
	return fmt.Sprintf("%d %s, first %s", len(d.barrier.awaited), causeSilent, slices.Min(slices.Collect(maps.Keys(d.barrier.awaited))))
}

// failures names the first refused object and counts them.
func (d *Driver[K]) failures() string {
	k, err := d.queue.firstFailure()
	return fmt.Sprintf("%d %s %s, first %s: %v", len(d.queue.failed)-d.queue.short, d.noun, causeFailed, k, err)
}
