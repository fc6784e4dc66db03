package acceptance_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Names of the interfaces that every node has.
const (
	// carries the default route; every client that is not on this node is behind it
	uplink = "uplink0"
	host   = "host0" // leads to the processes of this node
)

// owner says who owns the addresses of the node.
type owner string

const (
	// vppOwns: the addresses are on the uplink of VPP, as with Contiv and Calico. Answers to
	// the node's processes end in VPP itself, from where a real one hands them to the kernel.
	vppOwns owner = "VPP owns the node's addresses"
	// hostOwns: VPP routes the addresses to the kernel through an interface.
	hostOwns owner = "the host owns the node's addresses"
	// bareVPP: like vppOwns, and VPP has no ACL plugin.
	bareVPP owner = "VPP without access lists"
	// cnatServes: like vppOwns, and CNAT serves IPv4.
	cnatServes owner = "CNAT serves"
)

// places knows which address is behind which interface of VPP.
type places struct {
	vpp   *simulator.VPP
	owner owner
	// nodes are the addresses of this node.
	nodes map[netip.Addr]bool
	// pods are the interfaces of the pods of this node; known are the ones whose pods are in
	// Kubernetes.
	pods, known map[netip.Addr]string
	count       int
}

// build makes the interfaces of a node with these addresses.
func (n *node) build(owns owner, addresses []string) {
	n.Helper()
	p := &places{vpp: n.VPP, owner: owns, nodes: map[netip.Addr]bool{}, pods: map[netip.Addr]string{}, known: map[netip.Addr]string{}}
	n.places = p
	var onUplink []netip.Prefix
	for _, text := range addresses {
		a := netip.MustParseAddr(text)
		p.nodes[a] = true
		if !a.IsLoopback() && owns != hostOwns {
			onUplink = append(onUplink, netip.PrefixFrom(a, map[bool]int{true: 24, false: 64}[a.Is4()]))
		}
	}
	_, err := n.VPP.AddInterface(uplink, onUplink, true)
	must(n.T, err)
	must(n.T, n.VPP.DefaultRoute(uplink, netip.MustParseAddr("192.168.0.254")))
	_, err = n.VPP.AddInterface(host, []netip.Prefix{netip.MustParsePrefix("169.254.77.1/30")}, true)
	must(n.T, err)
	for a := range p.nodes {
		if !a.IsLoopback() && owns == hostOwns {
			route := simulator.Route{Prefix: netip.PrefixFrom(a, a.BitLen()), Interface: host}
			if a.Is4() {
				route.NextHop = netip.MustParseAddr("169.254.77.2")
			}
			must(n.T, n.VPP.AddRoute(route))
		}
	}
}

// addPod makes the interface of a pod of this node, as a CNI does.
func (p *places) addPod(t *testing.T, a netip.Addr) {
	t.Helper()
	if p.pods[a] != "" || p.nodes[a] {
		return
	}
	p.count++
	name := fmt.Sprint("pod", p.count)
	_, err := p.vpp.AddPod(name, a)
	must(t, err)
	p.pods[a] = name
}

// removePod takes the interface of a pod away.
func (p *places) removePod(t *testing.T, a netip.Addr) {
	t.Helper()
	must(t, p.vpp.DeleteInterface(p.pods[a]))
	delete(p.pods, a)
	delete(p.known, a)
}

// client makes a pod of this node that Kubernetes knows.
func (n *node) client(a netip.Addr) {
	n.Helper()
	n.places.addPod(n.T, a)
	n.places.known[a] = n.places.pods[a]
	n.Source.Change(func(s *kube.Store) {
		s.Set(&messages.Pod{Namespace: "clients", Name: "at-" + a.String(), Uid: a.String(), Node: n.Node, Addresses: []string{a.String()}}, nil)
	})
}

// needed are the interfaces that packets of services use.
func (p *places) needed(statuses map[string]*messages.ServiceStatus) map[string]bool {
	all := map[string]bool{uplink: true, host: true}
	for _, name := range p.known {
		all[name] = true
	}
	for _, status := range statuses {
		for _, f := range status.GetView().GetFrontends() {
			for _, b := range f.GetBackends() {
				if a, err := netip.ParseAddr(b.GetAddress()); err == nil && p.pods[a] != "" {
					all[p.pods[a]] = true
				}
			}
		}
	}
	return all
}

// of returns the interface that an address is behind.
func (p *places) of(a netip.Addr) string {
	switch {
	case p.nodes[a]:
		return host
	case p.pods[a] != "":
		return p.pods[a]
	default:
		return uplink
	}
}

// here reports whether an address is on this node, so that answers to it always come through this
// VPP.
func (p *places) here(a netip.Addr) bool { return p.of(a) != uplink }

// reached reports whether a packet with this verdict got to an address: through its interface, or
// by ending in VPP where that owns it.
func (p *places) reached(v simulator.Verdict, a netip.Addr) bool {
	if v.Dst.Addr() != a {
		return false
	}
	if v.Action == simulator.Local {
		return p.nodes[a] && p.owner != hostOwns
	}
	return v.Action == simulator.Delivered && v.Out == p.of(a)
}
