package desired

import (
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// trace says whether the service records the outcome of a spec in the journal. Specs that all
// services get at the same time are not recorded.
type trace bool

const (
	traced   trace = true
	untraced trace = false
)

// give gives a service a new spec and sends it. Until the node is known the registry only keeps it.
func (r *registry) give(c *runtime.Context, e *entry, in *messages.ServiceInput, t trace) {
	r.generation++
	e.spec = &messages.ServiceSpec{Input: in, Node: r.context, Generation: r.generation, Traced: bool(t), Refused: r.budget.Refused(in.GetKey())}
	if e.started { // it may be in quarantine because of the last spec
		c.Send(c.PID(address.Services), &messages.Nudge{Key: in.GetKey(), Generation: r.generation})
	}
	r.send(c, e)
}

// measure enters the size of a service into the budget.
func (r *registry) measure(in *messages.ServiceInput) {
	r.budget.Set(in.GetKey(), in.GetService().GetCreated(), service.Measure(in, r.context, &r.config.Serving))
}

// moved gives a service a new spec where its namespace has gained or lost the room for it.
func (r *registry) moved(c *runtime.Context, keys []string, t trace) {
	for _, key := range keys {
		if e := r.entries[key]; e != nil && e.spec.GetRefused() != r.budget.Refused(key) {
			r.give(c, e, e.spec.GetInput(), t)
		}
	}
}

// send sends the spec of a service. Nothing is local and nothing has an address before the node is
// known. In the first incarnation, an actor that is being spawned asks for its spec.
func (r *registry) send(c *runtime.Context, e *entry) {
	if r.context != nil && (e.started || c.Incarnation() > 1) {
		c.Send(c.PID(address.Service(e.spec.GetInput().GetKey())), e.spec)
	}
}

// pulled answers a service that asks for its spec.
func (r *registry) pulled(c *runtime.Context, key string) {
	e := r.entries[key]
	switch {
	case e != nil:
		e.started = true
		r.send(c, e)
	case r.complete: // before the first complete list the service may exist
		c.Send(c.PID(address.Services), &messages.Release{Key: key})
	}
}

// retired releases a service that has left VPP, unless it is wanted again.
func (r *registry) retired(c *runtime.Context, m *messages.Retired) {
	e := r.entries[m.GetKey()]
	// A service that was created again meanwhile has a higher generation than the one that
	// retired.
	if e != nil && (e.spec.GetInput().GetService() != nil || m.GetGeneration() < e.spec.GetGeneration()) {
		return
	}
	if e == nil && !r.complete {
		return // it may exist
	}
	delete(r.entries, m.GetKey())
	r.members = nil
	c.Send(c.PID(address.Services), &messages.Release{Key: m.GetKey()})
	for _, renderer := range r.config.Renderers { // one that has just got the list with it would wait
		c.Send(c.PID(address.Renderer(renderer)), &messages.Render{Key: m.GetKey(), Generation: m.GetGeneration()})
	}
}
