package actors

import (
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// healthRepeat is how often every part repeats its health at least, whether it has changed or not.
const healthRepeat = 2 * time.Second

// healthBeats is how often it does so really: one of them may be lost.
const healthBeats = 500 * time.Millisecond

// healthBeat makes a part repeat its health.
type healthBeat struct{}

// reporter tells the healer how one part is; the parts embed it. They call keep in Start, and keep and repeat for every healthBeat.
type reporter struct {
	part       string
	interfaces uint64 // generation of the interface set that the next report is about; 0 = of none
	roles      bool   // it gives interfaces their roles, so the interfaces actor is told as well
	refusedSet uint64 // generation of the interface set whose roles VPP refused; 0 = of none
	refusedWhy string
	reach      messages.Reach // of what is wrong; while everything is well it counts for nothing
	last       *messages.Health
	cause      string // of the last diagnosis
}

// report sends the health of the part; with ok, a reason is a warning.
func (r *reporter) report(c *runtime.Context, ok bool, reason string, epoch uint64) {
	r.last = &messages.Health{Part: r.part, Ok: ok, Reason: reason, Epoch: epoch, Interfaces: r.interfaces, RolesRefused: r.refusedWhy, RefusedSet: r.refusedSet, Reach: r.reach}
	r.repeat(c)
}

// repeat sends the last health again, so that a restarted healer learns it.
func (r *reporter) repeat(c *runtime.Context) {
	if r.last != nil {
		c.Send(c.PID(PathHealer), r.last)
		if r.roles {
			c.Send(c.PID(PathInterfaces), r.last)
		}
	}
}

// keep has the next healthBeat come.
func (*reporter) keep(c *runtime.Context) { c.After(healthBeats, &healthBeat{}) }
