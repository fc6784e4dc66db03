package desired

import (
	"slices"

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
	e.tries = 0 // a new spec ends the back-off
	r.unacked[in.GetKey()] = e
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

// send sends the spec of a service. Without an acknowledgement, retry sends it again.
func (r *registry) send(c *runtime.Context, e *entry) {
	e.tries++
	e.again = c.Now().Add(r.config.backoff(c.Actors()).DelayFor(e.spec.GetInput().GetKey(), e.tries))
	if r.context == nil {
		return // nothing is local and nothing has an address before the node is known
	}
	r.retryLater(c)
	if !e.started && c.Incarnation() == 1 {
		// its actor is being spawned and will ask for the spec; a restarted registry cannot
		// know which actors exist
		return
	}
	c.Send(c.PID(address.Service(e.spec.GetInput().GetKey())), e.spec)
}

// retryLater schedules the next retry, if a spec is unacknowledged.
func (r *registry) retryLater(c *runtime.Context) {
	if !r.retrying && len(r.unacked) > 0 {
		r.retrying = true
		c.After(r.config.Retry, &retryTick{})
	}
}

// retry resends the unacknowledged specs that are due. The Nudge lets the spawner end a quarantine
// of the actor.
func (r *registry) retry(c *runtime.Context) {
	now := c.Now()
	var due []string
	for key, e := range r.unacked {
		if !e.again.After(now) {
			due = append(due, key)
		}
	}
	slices.Sort(due) // a map has no order, and a simulation must be repeatable
	for _, key := range due {
		c.Send(c.PID(address.Services), &messages.Nudge{Key: key, Generation: r.unacked[key].spec.GetGeneration()})
		r.send(c, r.unacked[key])
	}
	r.retryLater(c)
}

// acknowledged notes that a service has taken its spec.
func (r *registry) acknowledged(m *messages.Have) {
	if e := r.entries[m.GetKey()]; e != nil {
		// An older generation says only that the actor exists.
		if e.started = true; m.GetGeneration() == e.spec.GetGeneration() {
			delete(r.unacked, m.GetKey())
		}
	}
}

// pulled answers a service that asks for its spec.
func (r *registry) pulled(c *runtime.Context, key string) {
	e := r.entries[key]
	switch {
	case e != nil:
		e.started, e.tries = true, 0
		r.unacked[key] = e
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
	delete(r.unacked, m.GetKey())
	r.members = nil
	c.Send(c.PID(address.Services), &messages.Release{Key: m.GetKey()})
}
