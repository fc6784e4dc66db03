package interfaces

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Remote returns the IPv4 pod networks and addresses of all other nodes, ordered. Routes to
// endpoints of other nodes are learnt by them, because there are far fewer of them than endpoints.
func Remote(self string, nodes map[string]*messages.Node) []netip.Prefix {
	var all []netip.Prefix
	for name, node := range nodes {
		if name != self {
			all = append(all, IPv4Networks(slices.Concat(node.GetPodCidrs(), node.GetAddresses()))...)
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}

// IPv4Networks returns the IPv4 networks and addresses among texts; the others are skipped.
func IPv4Networks(list []string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if a, bad := netip.ParseAddr(text); err != nil && bad == nil {
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if p.Addr().Is4() {
			all = append(all, p.Masked())
		}
	}
	return all
}

// remote returns the addresses whose routes stand for the remote networks, besides others that are
// looked up; none where VPP has one table.
func (in *Input) remote(raw *Raw, others []netip.Addr) (all []netip.Addr) {
	if len(raw.Tables) == 0 {
		return nil
	}
	known := make(map[netip.Addr]bool, len(others)+len(in.Remote))
	for _, a := range others {
		known[a] = true
	}
	for _, p := range in.Remote {
		if a := probe(p); !known[a] {
			known[a], all = true, append(all, a)
		}
	}
	return all
}

// tables returns to the interfaces of which tables the routes of endpoints lead: local ones one by
// one, remote ones by the pod networks and addresses of their nodes, all others by the default
// route. The pod networks of this node have the table of most pods: it is the best guess for a pod
// whose interface is away for a moment.
func (d *deriver) tables(in *Input) []*messages.TableNetwork {
	if !slices.ContainsFunc(d.raw.Interfaces, func(i RawInterface) bool { return i.Table != 0 }) {
		return nil
	}
	all := d.localTables(in)
	for _, p := range in.Remote {
		if i := d.exit(d.raw.Targets[probe(p)]); i != nil {
			all = append(all, forwarding.Network{Prefix: p, Table: i.Table})
		}
	}
	if i := d.exit(d.raw.Default4); i != nil {
		all = append(all, forwarding.Network{Prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Table: i.Table})
	}
	var out []*messages.TableNetwork
	for _, n := range forwarding.NewTables(all).Networks() {
		out = append(out, &messages.TableNetwork{Network: n.Prefix.String(), Table: n.Table})
	}
	return out
}

// unanswered says why VPP may not answer packets to addresses of its own. It takes them only from
// sources to which table 0 has a route, not by another table unless the API has made that route,
// and looks up the answer in the table of the interface: of IPv6 too by the number of the IPv4
// table.
func (d *deriver) unanswered() (why, why6 string) {
	const silent = "clients of other tables than 0 without an answer"
	for _, i := range sorted(d.raw.Interfaces) {
		if i.Table != 0 {
			why = fmt.Sprintf("interface %s is in table %d, and VPP may leave %s", i.Name, i.Table, silent)
			break
		}
	}
	if len(d.raw.tables6) > 0 {
		why6 = fmt.Sprintf("VPP has the IPv6 table %d, and may leave IPv6 %s", d.raw.tables6[0], silent)
	}
	return why, why6
}

// localTables returns the tables of pods, local endpoints and addresses of this node. An interface
// that the CNI reports overrides VPP's routes.
func (d *deriver) localTables(in *Input) (all []forwarding.Network) {
	pods := map[uint32]int{}
	add := func(p netip.Prefix, i *RawInterface) {
		pods[i.Table]++
		all = append(all, forwarding.Network{Prefix: p, Table: i.Table})
	}
	addresses := map[string][]string{}
	for _, pod := range in.Pods {
		if !pod.GetHostNetwork() {
			addresses[pod.GetNamespace()+"/"+pod.GetName()] = pod.GetAddresses()
		}
	}
	for k := range d.raw.Interfaces {
		i := &d.raw.Interfaces[k]
		for _, pod := range in.Attached[i.Name] {
			for _, p := range IPv4Networks(addresses[pod]) {
				add(p, i)
			}
		}
	}
	routed := slices.Clone(in.LocalEndpoints)
	for _, list := range addresses {
		routed = append(routed, list...)
	}
	for _, p := range IPv4Networks(routed) {
		if t := d.raw.Targets[p.Addr()]; t.leads() {
			if i := d.exit(t); i != nil {
				add(p, i)
			}
		}
	}
	most, usual := 0, uint32(0)
	for table, n := range pods {
		if n > most || n == most && table < usual {
			most, usual = n, table
		}
	}
	for _, p := range in.PodNetworks {
		if most > 0 {
			all = append(all, forwarding.Network{Prefix: p, Table: usual})
		}
	}
	// VPP itself receives what is for an address of its own, and may punt it to an interface in
	// another table, which has a route to exactly this address.
	for _, p := range IPv4Networks(in.NodeAddresses) {
		if t := d.raw.Targets[p.Addr()]; t.leads() && t.Prefix.IsSingleIP() {
			if i := d.exit(t); i != nil {
				all = append(all, forwarding.Network{Prefix: p, Table: i.Table})
			}
		}
	}
	return all
}

// nodeAddresses returns the addresses of the interfaces that have an address of this node in
// Kubernetes, for example a loopback behind several uplinks. If there are none, they are the
// addresses of the uplink, or of the interface whose addresses it uses. Addresses that are only
// valid on one link are left out.
func (d *deriver) nodeAddresses(kubernetes []string) []string {
	var all []netip.Prefix
	is := func(p netip.Prefix) bool { return slices.Contains(kubernetes, p.Addr().String()) }
	for _, i := range sorted(d.raw.Interfaces) {
		if i.AdminUp && slices.ContainsFunc(i.Addresses, is) {
			all = append(all, slices.DeleteFunc(slices.Clone(i.Addresses), func(p netip.Prefix) bool { return slices.Contains(all, p) })...)
		}
	}
	if i := d.find(d.uplink); len(all) == 0 && d.hasUplink {
		// An unnumbered uplink sends with the addresses of another interface, often a
		// loopback.
		if lender := d.find(i.Lender); len(i.Addresses) == 0 && i.Unnumbered && lender != nil {
			i = lender
		}
		all = slices.Clone(i.Addresses)
	}
	return texts(slices.DeleteFunc(all, func(p netip.Prefix) bool { return p.Addr().IsLinkLocalUnicast() }))
}

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
