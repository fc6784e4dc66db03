package interfaces

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/fib_types"

	"github.com/troupe-vpp/troupe/messages"
)

// Input is the state of this node in Kubernetes that its interfaces depend on. It is only read.
type Input struct {
	// Pods of this node. Pods in the host network have no interface of their own and are skipped.
	Pods []*messages.Pod
	// LocalEndpoints are the addresses of the endpoints that run on this node, in canonical text
	// form. Anything that is not an address is skipped.
	LocalEndpoints []string
	// NodeAddresses are the addresses of this node in Kubernetes. Where VPP routes one to an
	// interface the processes of the node are behind it. Anything that is not an address is
	// skipped.
	NodeAddresses []string
	// Attached are the pods that the CNI has reported behind an interface, by the name of the
	// interface. They override VPP's routes.
	Attached map[string][]string
	// Detached are the names of interfaces whose pods were reported and have been withdrawn.
	Detached map[string]bool
	// OtherProtocols are the indices of interfaces through which VPP has received packets that
	// are not TCP, UDP or ICMP, see OtherProtocols.
	OtherProtocols map[uint32]bool
	// Peers are the pod networks of other nodes whose routes are looked up, ordered.
	Peers []Peer
	// PodNetworks are the IPv4 pod networks of this node, Remote the IPv4 pod networks and
	// addresses of all other nodes, ordered, see Remote. They matter where VPP has several tables.
	PodNetworks, Remote []netip.Prefix
	// Loopback is the address by which NAT44 replaces the source of clients; invalid = NAT44 is
	// not used.
	Loopback netip.Addr
	// Complete says that all of this has been received from Kubernetes.
	Complete bool
	// Boot is the incarnation of VPP that is read (messages.LinkState.Boot).
	Boot string
}

// Raw is the state of VPP's interfaces. The order of Interfaces has no meaning, the order of
// addresses within one has: the first one is its primary address.
type Raw struct {
	Interfaces []RawInterface
	// Tables are the ids of the IPv4 tables besides table 0, ascending.
	Tables  []uint32
	tables6 []uint32
	// Targets are the routes of all addresses that were looked up.
	Targets map[netip.Addr]Target
	// Bridges are the bridge domains with a virtual interface, ProxyARP the ranges of addresses
	// for which interfaces with ProxyARP answer. The ranges are read only where they matter.
	Bridges  []Bridge
	ProxyARP []Range
	// Default4 and Default6 are the default routes of table 0, or where they lead to no interface,
	// of the smallest table where they do; without interfaces where no table has one.
	Default4, Default6 Target
}

// RawInterface is one interface of VPP (sw_interface_details, ip_address_details,
// ip_unnumbered_details, bridge_domain_details).
type RawInterface struct {
	// Index is sw_if_index; VPP reuses the numbers of deleted interfaces.
	Index uint32
	// Name is interface_name, Device interface_dev_type, for example "virtio", "Loopback" or
	// "VXLAN".
	Name, Device string
	// AdminUp and LinkUp are the two flags of the state.
	AdminUp, LinkUp bool
	// Addresses are its own addresses with the length of the subnet, IPv4 first, each family in
	// VPP's order.
	Addresses []netip.Prefix
	// Lender is the index of the interface whose addresses it uses, where Unnumbered is set.
	Lender     uint32
	Unnumbered bool
	// BVI says that it is the virtual interface of a bridge domain, ProxyARP that it answers ARP
	// for the ranges of Raw.ProxyARP.
	BVI, ProxyARP bool
	// Table is its IPv4 table.
	Table uint32
}

// Target is where VPP's table sends packets to one address.
type Target struct {
	// Prefix is the route that matched, host bits cleared; invalid when nothing was found. Where
	// routes say "look up in another table", it is the longest of the ones that matched.
	Prefix netip.Prefix
	// Interfaces are the indices of the interfaces that its best paths lead to, ascending, without
	// duplicates. Empty for addresses of VPP itself, for drop and reject, and where the paths could
	// not be followed.
	Interfaces []uint32
}

// leads reports whether the target is specific to its address: a default route covers every
// address.
func (t Target) leads() bool {
	return t.Prefix.IsValid() && t.Prefix.Bits() > 0 && len(t.Interfaces) > 0
}

// equal compares two targets.
func (t Target) equal(other Target) bool {
	return t.Prefix == other.Prefix && slices.Equal(t.Interfaces, other.Interfaces)
}

// addresses returns every address that has to be looked up, in a fixed order.
func (in *Input) addresses() []netip.Addr {
	seen := map[netip.Addr]bool{}
	var all []netip.Addr
	take := func(text string) {
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" && !seen[a.Unmap()] {
			seen[a.Unmap()] = true
			all = append(all, a.Unmap())
		}
	}
	for _, pod := range in.Pods {
		if !pod.GetHostNetwork() {
			for _, text := range pod.GetAddresses() {
				take(text)
			}
		}
	}
	for _, text := range slices.Concat(in.LocalEndpoints, in.NodeAddresses) {
		take(text)
	}
	for _, p := range in.Peers {
		if p.Network.IsValid() {
			take(probe(p.Network).String())
		}
	}
	return all
}

// nextHop returns the address a path goes to; invalid when it has none.
func nextHop(p *fib_types.FibPath) netip.Addr {
	var a netip.Addr
	switch p.Proto {
	case fib_types.FIB_API_PATH_NH_PROTO_IP4:
		a = netip.AddrFrom4(p.Nh.Address.GetIP4())
	case fib_types.FIB_API_PATH_NH_PROTO_IP6:
		a = netip.AddrFrom16(p.Nh.Address.GetIP6())
	}
	if !a.IsValid() || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}
