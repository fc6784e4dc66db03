package rendertest

import (
	"context"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// States of services, as they are acknowledged.
const (
	InSync  = messages.RenderState_RENDER_IN_SYNC
	Pending = messages.RenderState_RENDER_PENDING
	Failed  = messages.RenderState_RENDER_FAILED
	Retired = messages.RenderState_RENDER_RETIRED
)

// Connected sends the state of the connection, as the link actor would.
func (s *Stage) Connected() {
	s.Helper()
	s.Tell(s.VPP.State())
}

// Found sends the interfaces of the present VPP, as the interfaces actor would.
func (s *Stage) Found(generation uint64) {
	s.Helper()
	s.Tell(s.Interfaces(generation, probe.Uplink, "pod2"))
}

// Interfaces is a complete interface set of the present VPP: uplink0 is not local, the others lead
// to pods.
func (s *Stage) Interfaces(generation uint64, names ...string) *messages.InterfaceSet {
	indexes := s.VPP.VPP.Interfaces()
	set := &messages.InterfaceSet{Generation: generation, Complete: true, Boot: s.VPP.Boot()}
	for _, name := range names {
		set.Interfaces = append(set.Interfaces, &messages.Interface{SwIfIndex: indexes[name], Name: name, Frontend: true, Local: name != probe.Uplink})
	}
	return set
}

// BeginMessage is a list of services in their first generation.
func BeginMessage(generation uint64, keys ...string) *messages.Begin {
	m := &messages.Begin{Keys: slices.Sorted(slices.Values(keys)), Generation: generation, Node: &messages.NodeContext{Node: probe.ThisNode()}}
	for range keys {
		m.Generations = append(m.Generations, 1)
	}
	return m
}

// Begin sends BeginMessage.
func (s *Stage) Begin(generation uint64, keys ...string) {
	s.Helper()
	s.Tell(BeginMessage(generation, keys...))
}

// RenderMessage is the Render of a view; the hash is the generation.
func RenderMessage(generation uint64, v *messages.ServiceView) *messages.Render {
	return &messages.Render{Key: v.GetKey(), Generation: generation, Hash: generation, View: v}
}

// Render sends RenderMessage.
func (s *Stage) Render(generation uint64, v *messages.ServiceView) {
	s.Helper()
	s.Tell(RenderMessage(generation, v))
}

// Serve sends a view with an object for each address; without addresses the service is gone.
// Services with a shorter key are older.
func (s *Stage) Serve(key string, generation uint64, addresses ...string) {
	s.Helper()
	if len(addresses) == 0 {
		s.Tell(&messages.Render{Key: key, Generation: generation})
		return
	}
	s.Render(generation, s.View(key, int64(len(key)), addresses...))
}

// Ack is the last acknowledgement of a service; nil = none.
func (s *Stage) Ack(key string) *messages.RenderAck {
	return probe.Latest[*messages.RenderAck](s, address.Service(key))
}

// State is the state in the last acknowledgement of a service.
func (s *Stage) State(key string) messages.RenderState { return s.Ack(key).GetState() }

// Health is the last health of the renderer.
func (s *Stage) Health() *messages.Health { return probe.Latest[*messages.Health](s, address.Healer) }

// Healths are all reports of the health of the renderer.
func (s *Stage) Healths() []*messages.Health { return probe.All[*messages.Health](s, address.Healer) }

// Verified is the last result of a read.
func (s *Stage) Verified() *messages.Verified {
	return probe.Latest[*messages.Verified](s, address.Introspect)
}

// Events are the events that the renderer has recorded.
func (s *Stage) Events() []*messages.Event { return probe.All[*messages.Event](s, address.Journal) }

// Memory restarts the renderer with a reserve of 15 percent of VPP's memory, of which free percent
// are free. Then it sends connection, interfaces and a list of services with the next generation.
func (s *Stage) Memory(generation uint64, free int, keys ...string) {
	s.Helper()
	s.Free, s.Config.HeapReserve, s.Config.Heap = free, 15, func() stats.Source[heap.State] { return memory{s} }
	s.Kill()
	s.Connected()
	s.Found(1 + generation)
	s.Begin(generation, keys...)
}

// memory is a heap of 100 MiB.
type memory struct{ stage *Stage }

func (m memory) Read(context.Context) (heap.State, error) {
	return heap.State{Total: 100 << 20, Free: m.stage.Free << 20}, nil
}

// Reconnect begins another connection and reports it, with the interfaces.
func (s *Stage) Reconnect(generation uint64) {
	s.Helper()
	s.VPP.Disconnect("connection lost")
	s.VPP.Connect()
	s.Connected()
	s.Found(generation)
}

// Forwarding is a service with a TCP frontend on port 80 of each address and one backend.
//
// Each frontend has an endpoint of its own: VPP keeps the row of a deleted frontend if others have
// the same endpoint.
func Forwarding(key string, created int64, addresses ...string) *messages.ServiceView {
	v := &messages.ServiceView{Key: key, Created: created}
	for _, a := range addresses {
		octets := netip.MustParseAddr(a).AsSlice()
		port := uint32(octets[len(octets)-2])<<8 | uint32(octets[len(octets)-1])
		v.Frontends = append(v.Frontends, &messages.Frontend{
			Address: a, Port: 80, Protocol: messages.Protocol_TCP, Action: messages.Action_ACTION_FORWARD,
			Backends: []*messages.Backend{{Address: "10.1.1.2", Port: 1 + port%65535, Local: true}},
		})
	}
	return v
}

// Rejecting is a service without endpoints, with a cluster IP for each address.
func Rejecting(key string, created int64, addresses ...string) *messages.ServiceView {
	v := &messages.ServiceView{Key: key, Created: created}
	for _, a := range addresses {
		v.Frontends = append(v.Frontends, &messages.Frontend{
			Address: a, Port: 80, Protocol: messages.Protocol_TCP, Action: messages.Action_ACTION_REJECT, Scope: messages.Scope_SCOPE_CLUSTER,
		})
	}
	return v
}
