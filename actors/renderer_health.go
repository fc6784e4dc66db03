package actors

import (
	"fmt"

	"github.com/troupe-vpp/troupe/actors/runtime"
)

// What keeps a renderer from being in sync, as words that do not change while it goes on.
const (
	causeLink       = "no connection to VPP"
	causeUnknown    = "what VPP holds is not known"
	causeRefused    = "VPP refused"
	causeServices   = "the services are not known yet"
	causeSilent     = "services have not spoken"
	causeInterfaces = "VPP's interfaces are not known yet"
	causeFailed     = "rows refused by VPP"
	causeWork       = "rows are being programmed"
	causeSettings   = "settings and interfaces are being programmed"
	causeInSync     = "in sync"
)

// health tells whether VPP holds what it should, and if not why: at once when that changes, with the present numbers with every tick.
func (r *renderer) health(c *runtime.Context) {
	if r.pending() == 0 && !r.globals {
		r.damaged = false
	}
	cause := r.ails()
	if cause == r.cause && r.interfaces == r.last.GetInterfaces() {
		return
	}
	r.cause = cause
	ok, reason := cause == causeInSync, r.explain(cause)
	if r.last == nil || r.last.GetOk() != ok || r.last.GetReason() != reason || r.last.GetInterfaces() != r.interfaces {
		r.report(c, ok, reason, r.epoch)
	}
}

// ails returns the first thing that is not as it should be. Once in sync, ordinary changes do not take readiness away: VPP holds what was
// wanted a moment ago. Damage by others does.
func (r *renderer) ails() string {
	unready := !r.last.GetOk() || r.damaged
	switch {
	case !r.link.GetUp():
		return causeLink
	case r.have == nil:
		return causeUnknown
	case r.refused != nil:
		return causeRefused
	case r.begun == nil:
		return causeServices
	case len(r.awaited) > 0:
		return causeSilent
	case !r.located():
		return causeInterfaces
	case len(r.failed) > 0:
		return causeFailed
	case r.pending() > 0 && unready:
		return causeWork
	case (r.globals || !r.swept) && unready:
		return causeSettings
	}
	return causeInSync
}

// explain adds the details to a cause; being in sync needs no words.
func (r *renderer) explain(cause string) string {
	switch cause {
	case causeInSync:
		return ""
	case causeRefused:
		return r.refused.Error()
	case causeSilent:
		return fmt.Sprintf("%d %s, first %s", len(r.awaited), cause, missing(r.awaited, 1)[0])
	case causeFailed:
		key, err := r.firstFailure()
		return fmt.Sprintf("%d %s, first %s: %v", len(r.failed), cause, key, err)
	case causeWork:
		return fmt.Sprintf("%d %s", r.pending(), cause)
	default:
		return cause
	}
}
