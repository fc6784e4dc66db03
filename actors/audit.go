package actors

import (
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// audit has the renderers say again now and then what they have told the services: that may have been lost. They say it when they have compared VPP
// with what they think it holds, which they do by themselves (vigil), so that damage done by others does not last.
type audit struct{ deps *Deps }

// reasonAudit is why VPP is read now and then. A read for this reason that finds nothing is not worth an entry in the journal.
const reasonAudit = "periodic drift check"

// auditTick asks them.
type auditTick struct{}

func newAudit(d *Deps) runtime.Behaviour { return &audit{d} }

// Start satisfies runtime.Behaviour.
func (a *audit) Start(c *runtime.Context) {
	c.After(a.deps.Timing.Audit, &auditTick{})
	c.Ready()
}

// Stop satisfies runtime.Behaviour.
func (*audit) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (a *audit) Receive(c *runtime.Context, msg any) {
	if _, ok := msg.(*auditTick); ok {
		a.deps.tellRenderers(c, &messages.Verify{Reason: reasonAudit})
		c.After(a.deps.Timing.Audit, &auditTick{})
	}
}
