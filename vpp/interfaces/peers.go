package interfaces

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Peer is a pod network of another node.
type Peer struct {
	// Node is its name.
	Node string
	// Network is one of its pod networks; invalid = it has none.
	Network netip.Prefix
}

// Peers returns the IPv4 pod networks of all other nodes, ordered. A node without a pod network is
// listed with an invalid one.
func Peers(self string, nodes map[string]*messages.Node) []Peer {
	var all []Peer
	for name, node := range nodes {
		if name == self {
			continue
		}
		told := false
		for _, p := range rule.Networks(node.GetPodCidrs()) {
			if p.Addr().Is4() {
				all, told = append(all, Peer{name, p.Masked()}), true
			}
		}
		if !told {
			all = append(all, Peer{Node: name})
		}
	}
	slices.SortFunc(all, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.Network.Addr().Compare(b.Network.Addr()), cmp.Compare(a.Network.Bits(), b.Network.Bits()))
	})
	return all
}

// probe returns the first host address of a network: its route stands for the whole network.
func probe(p netip.Prefix) netip.Addr {
	if a := p.Addr(); p.Bits() >= a.BitLen()-1 {
		return a
	}
	return p.Addr().Next()
}

// peers returns the interfaces through which packets to the pods of other nodes leave. A default
// route counts, because VPP uses it for them.
func (d *deriver) peers(peers []Peer) []*messages.PeerNetwork {
	var all []*messages.PeerNetwork
	for _, p := range peers {
		one := &messages.PeerNetwork{Node: p.Node}
		if p.Network.IsValid() {
			one.Network = p.Network.String()
			for _, index := range d.raw.Targets[probe(p.Network)].Interfaces {
				if i := d.find(index); i != nil {
					one.Interfaces = append(one.Interfaces, i.Name)
				}
			}
			slices.Sort(one.Interfaces)
		}
		all = append(all, one)
	}
	return all
}
