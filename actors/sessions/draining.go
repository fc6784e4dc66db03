package sessions

import (
	"context"
	"net/netip"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// nat44Renderer is the name of the renderer whose backends drain.
const nat44Renderer = "nat44"

// VPP stops its workers while it lists its sessions. After a look, the next one waits restFactor
// times as long as the look took, and longestRest at most. So the workers stop for one percent of
// the time. A look that took over 0.3 seconds has waited for something else, such as a VPP that
// hung. A failed look has no meaningful duration.
const (
	restFactor  = 100
	longestRest = 30 * time.Second
)

// draining looks repeatedly for the sessions of draining backends and of rows with affinity, while
// there are any.
type draining struct {
	list  sessions.Wish
	turn  netip.Addr
	timed bool // a look is scheduled
	began time.Time
}

// drainingTick starts a look for draining backends.
type drainingTick struct{}

// drainingLooked is the result of a look for draining backends.
type drainingLooked struct {
	connection uint64
	generation uint64 // of the list
	swept      sessions.Swept
}

// drains takes the list of draining backends. They are looked for at once, unless the last look
// was just now.
func (k *housekeeper) drains(c *runtime.Context, m *sessions.Wish) {
	k.draining.list = *m
	if o := k.config.Observer; o != nil {
		o.Draining(len(m.Draining))
	}
	k.lookLater(c, 0)
}

// lookLater schedules the next look, if there is something to look for.
func (k *housekeeper) lookLater(c *runtime.Context, d time.Duration) {
	if len(k.draining.list.Draining)+len(k.draining.list.Sticky) > 0 && !k.draining.timed {
		k.draining.timed = true
		c.After(d, &drainingTick{})
	}
}

// lookForDraining begins a look. If it cannot, it tells the renderer that time has passed.
func (k *housekeeper) lookForDraining(c *runtime.Context) {
	k.draining.timed = false
	list := k.draining.list
	if k.busy || !k.link.GetUp() {
		k.answer(c, list.Generation, nil)
		k.lookLater(c, k.settings.Soon)
		return
	}
	k.draining.began = c.Now()
	connection, caller, turn := k.link.GetSession(), k.config.VPP, k.draining.turn
	list.EndedAfter = k.settings.EndedAfter
	slice := sessions.Slice{Deletions: k.settings.Batch, Dumps: k.settings.Dumps}
	k.do(c, "session-draining", func(ctx context.Context) any {
		return &drainingLooked{connection, list.Generation, sessions.Sweep(ctx, caller, list, turn, slice)}
	})
}

// lookedForDraining sends the result to the renderer.
func (k *housekeeper) lookedForDraining(c *runtime.Context, m *drainingLooked) {
	rest := k.settings.Soon
	if m.swept.Err == nil {
		rest = max(rest, min(restFactor*c.Now().Sub(k.draining.began), longestRest))
	}
	k.lookLater(c, rest)
	k.countDeleted(&m.swept.Freed)
	if !k.done(c, m.connection, m.swept.Err) {
		return
	}
	k.draining.turn = m.swept.Turn
	k.answer(c, m.generation, m.swept.Live)
}

// answer sends the numbers of sessions to the renderer. Without numbers it only says that time has
// passed, and which list is known.
func (*housekeeper) answer(c *runtime.Context, generation uint64, found map[netip.AddrPort]sessions.Live) {
	c.Send(c.PID(address.Renderer(nat44Renderer)), &sessions.Counted{Generation: generation, Live: found})
}
