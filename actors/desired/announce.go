package desired

import (
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// announce sends every renderer the list of services.
func (r *registry) announce(c *runtime.Context, rollCall bool) {
	for _, renderer := range r.config.Renderers {
		r.announceTo(c, renderer, rollCall)
	}
}

// announceTo sends one renderer the list of services with their generations. Before the addresses
// of VPP are known it sends none: views without them must not lead to a deletion.
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

// ensure sends the spawner and introspection the list of services; both drop all others.
func (r *registry) ensure(c *runtime.Context) {
	if !r.known() {
		return
	}
	all := &messages.Ensure{Keys: r.keys(), Complete: true, Generation: r.generation}
	c.Send(c.PID(address.Services), all)
	c.Send(c.PID(address.Introspect), all)
}

// callRoll starts a roll call. The source delivers a snapshot, and each actor repeats its last
// messages to the others. The renderers ask services that they know in an older generation, and
// repeat acknowledgements; these make the services repeat their status. Specs are not repeated:
// retry resends the unacknowledged ones. Inside a process a message is lost only when an actor
// fails, whose next incarnation asks again. The roll call repairs any other loss.
func (r *registry) callRoll(c *runtime.Context) {
	call := &messages.RollCall{}
	for _, path := range r.config.Called {
		c.Send(c.PID(path), call)
	}
	r.ensure(c)
	r.announce(c, true)
	r.tellEndpoints(c)
}

// callServices asks every service to repeat its status.
func (r *registry) callServices(c *runtime.Context) {
	call := &messages.RollCall{}
	for _, key := range r.keys() {
		c.Send(c.PID(address.Service(key)), call)
	}
}
