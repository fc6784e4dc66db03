package desired

import (
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// announce tells every renderer which services there are.
func (r *registry) announce(c *runtime.Context, rollCall bool) {
	for _, renderer := range r.config.Renderers {
		r.announceTo(c, renderer, rollCall)
	}
}

// announceTo tells one renderer which services there are, and in which generation. Before the
// addresses of VPP are known nothing is announced: what the services say without them must not lead
// to a deletion.
func (r *registry) announceTo(c *runtime.Context, renderer string, rollCall bool) {
	if !r.known() || r.context == nil || !r.looked {
		return // began, updateContext or interfacesChanged does it
	}
	begin := &messages.Begin{
		Keys: r.keys(), Generations: make([]uint64, 0, len(r.entries)), Node: r.context, Generation: r.generation, Provisional: !r.complete,
		NodeAddresses: r.addresses, PodNetworks: r.podNetworks, ServiceCidrs: r.node.GetServiceCidrs(), RollCall: rollCall,
	}
	for _, key := range begin.GetKeys() { // the barrier waits for these generations
		begin.Generations = append(begin.Generations, r.entries[key].spec.GetGeneration())
	}
	c.Send(c.PID(address.Renderer(renderer)), begin)
}

// ensure tells the spawner and introspection which services exist: both drop the others.
func (r *registry) ensure(c *runtime.Context) {
	if !r.known() {
		return
	}
	all := &messages.Ensure{Keys: r.keys(), Complete: true, Generation: r.generation}
	c.Send(c.PID(address.Services), all)
	c.Send(c.PID(address.Introspect), all)
}

// callRoll repeats everything: the source delivers a snapshot, each actor repeats what it last told
// the others, the renderers ask the services that they know in an older generation, and repeat
// acknowledgements, at which the services repeat their status. Specs are not repeated here: one
// without an acknowledgement is sent again anyway. Inside a process nothing is lost without the
// failure of an actor, whose next incarnation asks again; this is for whatever else there may be.
func (r *registry) callRoll(c *runtime.Context) {
	call := &messages.RollCall{}
	for _, path := range r.config.Called {
		c.Send(c.PID(path), call)
	}
	r.ensure(c)
	r.announce(c, true)
	r.tellEndpoints(c)
}

// callServices has every service repeat its status.
func (r *registry) callServices(c *runtime.Context) {
	call := &messages.RollCall{}
	for _, key := range r.keys() {
		c.Send(c.PID(address.Service(key)), call)
	}
}
