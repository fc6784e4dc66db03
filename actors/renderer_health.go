package actors

import (
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// What keeps access lists from being in sync.
const (
	causeGuard     = "access lists are being programmed"
	causeUnguarded = "VPP refused access lists"
)

// health tells whether VPP holds what it should, and if not why: at once when that changes, with the present numbers with every tick.
func (r *renderer) health(c *runtime.Context) {
	if r.pending() == 0 && !r.globals && !r.guard.busy(r.passed()) {
		r.damaged, r.once = false, r.once || r.opened
	}
	warning := ""
	if r.begun.GetProvisional() {
		warning = causeMirror
	} else if r.fromMirror() {
		r.cause = "" // the warning has to go
	}
	r.diagnose(c, r.ails(), warning, r.epoch)
}

// fromMirror reports whether we were last in sync with what the local mirror says, and not with the cluster.
func (r *renderer) fromMirror() bool { return r.last.GetReason() == causeMirror }

// ails returns the first thing that is not as it should be.
func (r *renderer) ails() ailment {
	unready := !r.last.GetOk() || r.damaged || r.fromMirror()
	var located, settings, guard ailment
	if !r.located() {
		located.cause = causeInterfaces
	}
	if (r.globals || !r.swept && !r.begun.GetProvisional()) && unready {
		settings = ailment{cause: causeSettings, reach: messages.Reach_REACH_DOWNSTREAM}
	}
	switch {
	case r.guard.err != nil:
		guard = ailment{causeUnguarded, func() string { return causeUnguarded + ": " + r.guard.err.Error() }, messages.Reach_REACH_OBJECT}
	case r.guard.busy(r.passed()) && unready:
		guard = ailment{cause: causeGuard, reach: messages.Reach_REACH_DOWNSTREAM}
	}
	return firstOf(r.outlet.ails(r.have != nil), r.enrolment.ails(), located, guard, r.backlog.ails(unready), settings)
}
