package model

import (
	"cmp"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator/acl"
	"github.com/troupe-vpp/troupe/vpp/simulator/cnat"
	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Model is the state of one incarnation of VPP: its network and the plugins that stand in it. It is
// guarded by VPP.mu.
type Model struct {
	*vnet.Network
	Workers     int
	NATWorkers  uint64            // a bit for each that does NAT
	Subscribers map[uint32]uint32 // interface events: pid by client index
	NAT         *nat.Plugin
	ACLs        *acl.Plugin
	CNAT        *cnat.Plugin

	heap mainHeap
}

// New returns the state of VPP right after its start: local0 and two empty default tables. heap is
// the size of its main heap, 0 = 1 GiB.
func New(clock func() time.Time, workers int, seed uint32, heap int) *Model {
	m := &Model{Network: vnet.NewNetwork(clock), Workers: workers, NATWorkers: 1<<workers - 1, Subscribers: make(map[uint32]uint32)}
	m.heap = mainHeap{size: cmp.Or(heap, heapSize), used: heapBase}
	m.NAT = nat.NewPlugin(m.Network, seed)
	m.ACLs = acl.NewPlugin()
	m.CNAT = cnat.NewPlugin(m.Network)
	m.Watch(m.NAT)
	m.Watch(m.ACLs)
	m.AddInterface(&vnet.Interface{Name: "local0", DevType: "local"})
	clear(m.Pending)
	return m
}

// Unsubscribe ends the subscriptions of a client that is gone.
func (m *Model) Unsubscribe(client uint32) {
	delete(m.Subscribers, client)
}
