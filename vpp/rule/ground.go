package rule

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/troupe-vpp/troupe/messages"
)

// Ground holds the addresses and ports that belong to hosts, pods and networks, whatever a service
// says. It is immutable; the zero value holds none.
type Ground struct {
	// Hosts are the addresses of all nodes, of VPP, and of the VPPs of the other nodes.
	Hosts map[netip.Addr]bool
	// Pods are the pod networks of all nodes.
	Pods []netip.Prefix
	// Connected are the networks that VPP has interfaces in.
	Connected []netip.Prefix
	// Reserved are the ports of hosts that the nodes use themselves; Listening are the ports on
	// which processes of this node listen.
	Reserved, Listening Ports
}

// NewGround collects the addresses from the state of the cluster and the interfaces of VPP; either
// may be nil.
func NewGround(begin *messages.Begin, set *messages.InterfaceSet, reserved Ports) Ground {
	g := Ground{Hosts: map[netip.Addr]bool{}, Reserved: reserved, Listening: Ports{}}
	for _, list := range [...][]string{begin.GetNodeAddresses(), begin.GetNode().GetAddresses()} {
		for _, text := range list {
			if addr, err := netip.ParseAddr(text); err == nil {
				g.Hosts[addr.Unmap()] = true
			}
		}
	}
	for _, list := range [...][]string{begin.GetPodNetworks(), begin.GetNode().GetNode().GetPodCidrs()} {
		for _, p := range Networks(list) {
			if p.Bits() > 0 {
				g.Pods = append(g.Pods, p.Masked())
			}
		}
	}
	for _, text := range set.GetListening() {
		if p, err := ParsePort(text); err == nil {
			g.Listening[p] = true
		}
	}
	for _, i := range set.GetInterfaces() {
		for _, p := range Networks(i.GetAddresses()) {
			g.Hosts[p.Addr()] = true
			g.Connected = append(g.Connected, p.Masked())
		}
	}
	return g
}

// Networks returns the networks among texts, with their host bits. What is no network is skipped.
func Networks(texts []string) (all []netip.Prefix) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// LastAddress is the last address of a network that no pod gets: the one before the broadcast
// address.
func LastAddress(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last.Prev()
}

// Equal reports whether both hold the same.
func (g Ground) Equal(other Ground) bool {
	return maps.Equal(g.Hosts, other.Hosts) && slices.Equal(g.Pods, other.Pods) && slices.Equal(g.Connected, other.Connected) &&
		maps.Equal(g.Reserved, other.Reserved) && maps.Equal(g.Listening, other.Listening)
}

// Refuses says why a claim on a frontend is not served; "" = it may be. Addresses and ports that
// Kubernetes allocates are always served.
func (g Ground) Refuses(k Key, rank Rank) string {
	switch {
	case rank < OfLoadBalancer:
		return ""
	case contains(g.Pods, k.Addr):
		return fmt.Sprintf("%s is in a pod network", k.Addr)
	case g.Hosts[k.Addr] && g.Reserved[Port{k.Port, k.Proto}]:
		return fmt.Sprintf("port %s of the nodes is reserved", Port{k.Port, k.Proto})
	case g.Hosts[k.Addr] && g.Listening[Port{k.Port, k.Proto}]:
		return fmt.Sprintf("a process of this node listens on port %s", Port{k.Port, k.Proto})
	default:
		return ""
	}
}

// Droppable reports whether an access list may drop packets to a frontend. Later fragments carry no
// port, so a rule for UDP drops fragments to every port of the address. No service may do that to
// an address that its author has chosen, or to an address of a host. A frontend with source ranges
// counts as a load-balancer address.
func (g Ground) Droppable(k Key, f *messages.Frontend) bool {
	rank := RankOf(f)
	switch {
	case k.Proto != UDP:
		return true
	case rank == OfNodePort, rank >= OfExternalIP && len(f.GetAllowSources()) == 0:
		return false
	default:
		return !g.Hosts[k.Addr]
	}
}

// Routable reports whether an address outside of the service networks may be made unreachable as a
// whole: no host, no pod and no neighbour can have it.
func (g Ground) Routable(addr netip.Addr) bool {
	return !g.Hosts[addr] && !contains(g.Pods, addr) && !contains(g.Connected, addr)
}

// contains reports whether one of the networks contains the address.
func contains(networks []netip.Prefix, addr netip.Addr) bool {
	for _, p := range networks {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// Port is a port of a protocol.
type Port struct {
	// Number is 1..65535.
	Number uint16
	// Proto is the IANA protocol number.
	Proto uint8
}

// ParsePort is the reverse of Port.String for TCP and UDP.
func ParsePort(text string) (Port, error) {
	key, err := ParseKey("0.0.0.0:" + text)
	if err != nil || key.Port == 0 || key.Proto != TCP && key.Proto != UDP {
		return Port{}, fmt.Errorf("parse port %q: %w: expected NUMBER/TCP or NUMBER/UDP", text, ErrKey)
	}
	return Port{key.Port, key.Proto}, nil
}

// String returns the port as "number/PROTO".
func (p Port) String() string { return strconv.Itoa(int(p.Number)) + "/" + ProtocolName(p.Proto) }

// Ports is a set of ports; immutable.
type Ports map[Port]bool
