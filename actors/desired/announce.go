package desired

import (
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
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
		NodeAddresses: r.addresses, PodNetworks: r.podNetworks, ServiceCidrs: r.node.GetServiceCidrs(), AddressPools: r.node.GetAddressPools(),
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

// watch is the part of the registry that listens to the Kubernetes source, with a health of its
// own. The source outlives the registry, so that a restart costs the API server nothing.
type watch struct {
	report.Health
	leave  func() // ends the listening
	source kube.Health
}

// tellNode passes nodes and pods on.
func (r *registry) tellNode(c *runtime.Context) {
	for _, path := range []string{address.Nodes, address.Interfaces, address.Introspect} {
		c.Send(c.PID(path), &messages.NodeChanged{Input: r.node})
	}
}

// reportWatch reports the health of the source. The first list must be complete, and a source that
// does not see changes must not have been away for too long. Even a young snapshot of the mirror
// does not count as a list: a rolling update that cuts off the API server must stop at its first
// node.
func (r *registry) reportWatch(c *runtime.Context) {
	w := &r.watch
	ok, reason := r.complete, w.source.Reason
	if w.AsOf = 0; !w.source.OK {
		w.AsOf = w.source.AsOf.UnixNano()
		if limit := r.config.Staleness; ok && limit >= 0 && c.Now().Sub(w.source.AsOf) > limit {
			ok, reason = false, "stale for more than "+limit.String()+": "+reason
		}
	}
	if reason == "" && !ok {
		reason = "the first list is not complete"
	}
	if !w.Current(ok, reason) {
		w.Report(c, ok, reason, 0)
	}
}

// postSink turns the deliveries of a source into messages to the registry.
type postSink struct{ post func(msg any) }

func (p postSink) ServiceChanged(in *messages.ServiceInput) {
	p.post(&messages.ServiceChanged{Input: in})
}

func (p postSink) NodeChanged(in *messages.NodeInput) { p.post(&messages.NodeChanged{Input: in}) }

func (p postSink) Snapshot(s *messages.Snapshot) { p.post(s) }

func (p postSink) Health(h kube.Health) { p.post(&h) }
