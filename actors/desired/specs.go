package desired

import (
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// give hands a new spec to the service; until the node is known the registry only keeps it. The
// service records what becomes of a traced one.
func (r *registry) give(c *runtime.Context, e *entry, in *messages.ServiceInput, traced bool) {
	r.generation++
	e.spec = &messages.ServiceSpec{Input: in, Node: r.context, Generation: r.generation, Traced: traced, Refused: r.budget.Refused(in.GetKey())}
	e.tries = 0 // news end the back-off
	r.unacked[in.GetKey()] = e
	r.send(c, e)
}

// measure enters what a service asks of the node.
func (r *registry) measure(in *messages.ServiceInput) {
	r.budget.Set(in.GetKey(), in.GetService().GetCreated(), service.Measure(in, r.context, &r.config.Serving))
}

// moved gives those of the services a new spec for which their namespace has room now and had none,
// or the other way round.
func (r *registry) moved(c *runtime.Context, keys []string, traced bool) {
	for _, key := range keys {
		if e := r.entries[key]; e != nil && e.spec.GetRefused() != r.budget.Refused(key) {
			r.give(c, e, e.spec.GetInput(), traced)
		}
	}
}

// send sends the spec of a service, and again later if it is not acknowledged.
func (r *registry) send(c *runtime.Context, e *entry) {
	e.tries++
	e.again = c.Now().Add(r.config.backoff().DelayFor(e.spec.GetInput().GetKey(), e.tries))
	if r.context == nil {
		return // nothing is local and nothing has an address before the node is known
	}
	r.retryLater(c)
	if !e.started && c.Incarnation() == 1 {
		// its actor is being spawned and will ask; a restarted registry cannot know which actors
		// exist
		return
	}
	c.Send(c.PID(address.Service(e.spec.GetInput().GetKey())), e.spec)
}

// retryLater has the next retry come, if there is anything to retry.
func (r *registry) retryLater(c *runtime.Context) {
	if !r.retrying && len(r.unacked) > 0 {
		r.retrying = true
		c.After(r.config.Retry, &retryTick{})
	}
}

// retry sends specs again that were not acknowledged. The actor may be in quarantine: the spawner
// is told as well.
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
		// Of an older generation it says that the actor exists, and nothing of the present spec.
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
	case r.complete: // before the first list the service may exist
		c.Send(c.PID(address.Services), &messages.Release{Key: key})
	}
}

// retired lets a service go of which nothing is left in VPP, unless it is wanted again.
func (r *registry) retired(c *runtime.Context, m *messages.Retired) {
	e := r.entries[m.GetKey()]
	// A service that was deleted and created again meanwhile has a higher generation than the one
	// that it retired for.
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

// endpointsTick computes the local endpoints, a little after the first change of several.
type endpointsTick struct{}

// endpointsDelay gathers changes of local endpoints: they only matter for the backend set.
const endpointsDelay = 50 * time.Millisecond

// host notes which endpoints of a service are on this node.
func (r *registry) host(c *runtime.Context, in *messages.ServiceInput) {
	addresses := localEndpoints(in, r.config.NodeName)
	if slices.Equal(r.hosted[in.GetKey()], addresses) {
		return
	}
	if len(addresses) == 0 {
		delete(r.hosted, in.GetKey())
	} else {
		r.hosted[in.GetKey()] = addresses
	}
	if !r.stale {
		r.stale = true
		c.After(endpointsDelay, &endpointsTick{})
	}
}

// computeEndpoints joins the addresses of all endpoints on this node. It is computed, not counted:
// a pod that backs several services stays a backend until the last of them drops it.
func (r *registry) computeEndpoints(c *runtime.Context) {
	r.stale = false
	if addresses := union(r.hosted); r.endpoints == nil || !slices.Equal(addresses, r.endpoints.GetAddresses()) {
		r.generation++
		r.endpoints = &messages.LocalEndpoints{Addresses: addresses, Generation: r.generation}
	}
	r.tellEndpoints(c)
}

// tellEndpoints sends the local endpoints; before the first snapshot they are not known.
func (r *registry) tellEndpoints(c *runtime.Context) {
	if r.endpoints != nil && r.known() {
		c.Send(c.PID(address.Interfaces), r.endpoints)
	}
}
