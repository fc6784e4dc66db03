package actors

import "github.com/troupe-vpp/troupe/actors/runtime"

// health tells whether VPP holds what it should, and if not why: at once when that changes, with the present numbers with every tick.
func (r *renderer) health(c *runtime.Context) {
	if r.pending() == 0 && !r.globals {
		r.damaged = false
	}
	r.diagnose(c, r.ails(), "", r.epoch)
}

// ails returns the first thing that is not as it should be.
func (r *renderer) ails() ailment {
	unready := !r.last.GetOk() || r.damaged
	var located, settings ailment
	if !r.located() {
		located.cause = causeInterfaces
	}
	if (r.globals || !r.swept) && unready {
		settings.cause = causeSettings
	}
	return firstOf(r.outlet.ails(r.have != nil), r.enrolment.ails(), located, r.backlog.ails(unready), settings)
}
