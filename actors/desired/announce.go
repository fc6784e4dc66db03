package desired

import (
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// announce sends every renderer the list of services.
func (r *registry) announce(c *runtime.Context) {
	for _, renderer := range r.config.Renderers {
		r.announceTo(c, renderer)
	}
}

// announceTo sends one renderer the list of services with their generations. Before the addresses
// of VPP are known it sends none: views without them must not lead to a deletion.
func (r *registry) announceTo(c *runtime.Context, renderer string) {
	if !r.known() || r.context == nil || !r.looked {
		return // began, updateContext or interfacesChanged does it
	}
	begin := &messages.Begin{
		Keys: r.keys(), Generations: make([]uint64, 0, len(r.entries)), Node: r.context, Generation: r.generation, Provisional: !r.complete,
		NodeAddresses: r.addresses, PodNetworks: r.podNetworks, ServiceCidrs: r.node.GetServiceCidrs(),
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

// callServices asks every service to repeat its status.
func (r *registry) callServices(c *runtime.Context, m *messages.Resync) {
	for _, key := range r.keys() {
		c.Send(c.PID(address.Service(key)), m)
	}
}
