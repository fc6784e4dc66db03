// Package model is one incarnation of the simulated VPP: its network and plugins, the graph that a
// packet takes, and the requests of the binary API that are executed on it, one file for each
// message family, which registers its handlers in NewRegistry.
//
// The messages of the API connection itself (memclnt) are in package simulator, because they change
// connections and not the model.
package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator/cnat"
	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Model is the state of one incarnation of VPP: its network and the plugins that stand in it. It is
// guarded by VPP.mu.
type Model struct {
	*vnet.Network
	Workers      int
	NATWorkers   uint64 // a bit for each that does NAT
	SessionLayer bool
	Subscribers  map[uint32]uint32 // interface events: pid by client index
	NAT          *nat.Plugin
	ACLs         *aclPlugin
	CNAT         *cnat.Plugin
	routers      map[routerKey]*router

	heap mainHeap
}

// New returns the state of VPP right after its start: local0 and two empty default tables. heap is
// the size of its main heap, 0 = 1 GiB.
func New(clock func() time.Time, workers, heap int) *Model {
	m := &Model{Network: vnet.NewNetwork(clock), Workers: workers, NATWorkers: 1<<workers - 1, Subscribers: make(map[uint32]uint32)}
	m.heap = mainHeap{size: cmp.Or(heap, heapSize), used: heapBase}
	m.NAT = nat.NewPlugin(m.Network)
	m.ACLs = &aclPlugin{lists: make(map[uint32]*aclLists)}
	m.CNAT = cnat.NewPlugin(m.Network)
	m.routers = map[routerKey]*router{}
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

// Describe writes the whole state.
func (m *Model) Describe() string {
	var b strings.Builder
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		slices.Sort(lines)
		fmt.Fprintf(&b, "%s\n", title)
		for _, line := range lines {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	section("interfaces", m.DescribeInterfaces())
	section("neighbors", m.DescribeNeighbors())
	section("routes", m.DescribeRoutes())
	section("features", m.describeFeatures())
	section("acls", m.ACLs.Describe(m.NameOf))
	section("nat44", m.NAT.DescribeConfig())
	section("nat44 addresses", m.NAT.DescribeAddresses())
	section("nat44 interfaces", m.NAT.DescribeRoles())
	section("nat44 mappings", m.NAT.DescribeMappings())
	section("nat44 sessions", m.NAT.DescribeSessions())
	section("cnat", m.CNAT.Describe(m.NameOf))
	section("virtual routers", m.describeRouters())
	return b.String()
}

// describeFeatures lists the nodes that clients put on feature arcs; nodes that follow from NAT
// roles are shown as roles.
func (m *Model) describeFeatures() []string {
	var lines []string
	for key, count := range m.Features {
		switch key.Node {
		case nat.NodeIn2out, nat.NodeOut2in, nat.NodeClassify, nat.NodeOutput:
			continue
		}
		line := fmt.Sprintf("%s %s on %s", key.Arc, key.Node, m.NameOf(key.SwIf))
		if count > 1 {
			line += fmt.Sprintf(" %d times", count)
		}
		lines = append(lines, line)
	}
	return lines
}
