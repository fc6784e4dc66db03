// Package audit is the actor that schedules the drift checks of all renderers. VPP does not report
// changes by other programs, so each renderer reads VPP at an interval and compares.
//
// VPP answers under a barrier that stops its workers, so a reading delays packets. After a reading,
// VPP is left alone for a multiple of the time that it took. The schedule is a value without a
// clock and belongs to the actor. A renderer carries out the check when it has no other work.
package audit

import (
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// DefaultLeast and DefaultMost bound the time between two drift checks unless a configuration says
// otherwise.
const DefaultLeast, DefaultMost = 45 * time.Second, time.Minute

// Config is the configuration of the actor. It is read-only.
type Config struct {
	// Renderers are the names of all renderers.
	Renderers []string
	// Least and Most bound the time between two drift checks of a renderer.
	Least, Most time.Duration
}

// A reading may take one share-th of the time. The first overhead of it does not count: the
// requests travel that long, one after the other, while VPP 25.10 with next to no rows is busy for
// a fraction of it.
const (
	share    = 1000
	overhead = time.Millisecond
)

// auditor schedules drift checks.
type auditor struct {
	config *Config
	checks map[string]*check
}

// check is the schedule of one renderer.
type check struct {
	took   time.Duration // duration of the last reading
	cancel func()        // of the timer
}

// due starts the drift check of a renderer.
type due struct{ renderer string }

// New returns the actor.
func New(config *Config) runtime.Behaviour {
	return &auditor{config: config, checks: map[string]*check{}}
}

// Start satisfies runtime.Behaviour.
func (a *auditor) Start(c *runtime.Context) {
	for _, name := range a.config.Renderers {
		a.checks[name] = &check{}
		a.after(c, name, a.config.Least)
	}
	c.Ready()
}

// Stop satisfies runtime.Behaviour.
func (*auditor) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (a *auditor) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Verified: // of any reading, not only of drift checks
		if k := a.checks[m.GetRenderer()]; k != nil {
			a.after(c, m.GetRenderer(), k.next(time.Duration(m.GetTook()), a.config.Least, a.config.Most))
		}
	case *due:
		c.Send(c.PID(address.Renderer(m.renderer)), &messages.Verify{Routine: true})
		a.after(c, m.renderer, a.config.Most) // unless the renderer reports a reading before
	}
}

// after schedules the check of a renderer and replaces the earlier time.
func (a *auditor) after(c *runtime.Context, renderer string, d time.Duration) {
	k := a.checks[renderer]
	if k.cancel != nil {
		k.cancel()
	}
	k.cancel = c.After(d, &due{renderer})
}

// next returns the time until the next reading. It depends on the shorter one of the last two
// readings: a longer one has waited for something else than VPP, for example a processor.
func (k *check) next(took, least, most time.Duration) time.Duration {
	cost := min(took, k.took) - overhead
	k.took = took
	return min(max(share*cost, least), most)
}
