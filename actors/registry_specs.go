package actors

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// mostDoublings bounds the patience with somebody who does not answer: 32 times the first one.
const mostDoublings = 5

// give hands a new spec to the service; until the node is known it only keeps it.
func (r *registry) give(c *runtime.Context, e *entry, in *messages.ServiceInput) {
	r.generation++
	r.count(e)
	e.spec = &messages.ServiceSpec{Input: in, Node: r.context, Generation: r.generation, Epochs: r.epochs, Traced: r.traced}
	r.count(e)
	e.tries = 0
	r.open[in.GetKey()] = e
	r.send(c, e)
}

// count adds the generation of an entry to the sum of all, or takes it away.
func (r *registry) count(e *entry) {
	if e.spec != nil {
		r.given ^= kube.DigestHash(e.spec.GetInput().GetKey(), e.spec.GetGeneration())
	}
}

func (r *registry) send(c *runtime.Context, e *entry) {
	e.again = c.Now().Add(r.deps.Timing.Retry << min(e.tries, mostDoublings))
	e.tries++
	if r.context == nil {
		return // nothing is local and nothing has an address before the node is known
	}
	if !e.pulled && c.Incarnation() == 1 {
		return // its actor is being spawned and will ask; a restarted registry can not know who is there
	}
	c.Send(c.PID(PathService(e.spec.GetInput().GetKey())), e.spec)
}

// pulled answers a service that has just started, with the present epochs: it may have missed their Replays.
func (r *registry) pulled(c *runtime.Context, key string) {
	e := r.entries[key]
	switch {
	case e != nil:
		e.pulled, e.tries = true, 0
		if !maps.Equal(e.spec.GetEpochs(), r.epochs) {
			e.spec = &messages.ServiceSpec{
				Input: e.spec.GetInput(), Node: e.spec.GetNode(), Generation: e.spec.GetGeneration(), Epochs: r.epochs, Traced: e.spec.GetTraced(),
			}
		}
		r.send(c, e)
	case r.complete:
		c.Send(c.PID(PathServices), &messages.Release{Key: key})
	}
}

func (r *registry) retired(c *runtime.Context, m *messages.Retired) {
	e := r.entries[m.GetKey()]
	if e != nil && (e.spec.GetInput().GetService() != nil || m.GetGeneration() < e.spec.GetGeneration()) {
		return // it is wanted again
	}
	if e == nil && !r.complete {
		return // nobody knows yet
	}
	if e != nil {
		r.count(e)
	}
	delete(r.entries, m.GetKey())
	delete(r.open, m.GetKey())
	r.members = nil
	c.Send(c.PID(PathServices), &messages.Release{Key: m.GetKey()})
}

// tick repeats specs that were not taken. The actor may have been lost or quarantined: the spawner is told as well.
func (r *registry) tick(c *runtime.Context) {
	c.After(r.deps.Timing.Retry, &registryTick{})
	if !r.looked {
		r.askInterfaces(c)
	}
	if !r.known() {
		r.pull(c)
	}
	if r.context == nil {
		return // nobody can have taken anything
	}
	now := c.Now()
	for _, key := range sortedKeys(r.open) {
		if e := r.open[key]; !e.again.After(now) {
			c.Send(c.PID(PathServices), &messages.Nudge{Key: key, Generation: e.spec.GetGeneration()})
			r.send(c, e)
		}
	}
}

// remindAtOnce is how many services get their spec before its time at a time.
const remindAtOnce = 32

// remind repeats some specs before their time, in turn: the delays are there to spare those who cannot answer, but most have only lost a message.
// What was sent a moment ago may be under way.
func (r *registry) remind(c *runtime.Context) {
	if r.context == nil {
		return
	}
	var open []string
	for key, e := range r.open {
		if sent := e.again.Add(-r.deps.Timing.Retry << min(e.tries-1, mostDoublings)); c.Now().Sub(sent) >= r.deps.Timing.Digest {
			open = append(open, key)
		}
	}
	slices.Sort(open)
	at, _ := slices.BinarySearch(open, r.cursor+"\x00")
	for _, key := range slices.Concat(open[at:], open[:at])[:min(len(open), remindAtOnce)] {
		r.cursor = key
		e := r.open[key]
		c.Send(c.PID(PathServices), &messages.Nudge{Key: key, Generation: e.spec.GetGeneration()})
		c.Send(c.PID(PathService(key)), e.spec)
	}
}

// endpointsTick computes the local endpoints, a little after the first change of several.
type endpointsTick struct{}

// endpointsDelay gathers changes of local endpoints: they only matter for the backend set.
const endpointsDelay = 50 * time.Millisecond

// host notes which endpoints of a service are on this node.
func (r *registry) host(c *runtime.Context, in *messages.ServiceInput) {
	addresses := localEndpoints(in, r.deps.NodeName)
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

// computeEndpoints joins the addresses of all endpoints on this node. It is computed, not counted: a pod that backs several services
// stays a backend until the last of them drops it.
func (r *registry) computeEndpoints(c *runtime.Context) {
	r.stale = false
	if addresses := union(r.hosted); r.endpoints == nil || !slices.Equal(addresses, r.endpoints.GetAddresses()) {
		r.generation++
		r.endpoints = &messages.LocalEndpoints{Addresses: addresses, Generation: r.generation}
	}
	r.tellEndpoints(c)
}

// tellEndpoints repeats the local endpoints; before the first snapshot they are not known.
func (r *registry) tellEndpoints(c *runtime.Context) {
	if r.endpoints != nil && r.known() {
		c.Send(c.PID(PathInterfaces), r.endpoints)
	}
}
