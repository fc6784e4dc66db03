package external

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// SourceSNAT is the layer of dynamic SNAT. It ranks below all others.
const SourceSNAT = "snat"

// SNAT are the settings of dynamic SNAT: packets of pods leave the cluster with the address of the
// node.
type SNAT struct {
	// Enabled turns SNAT on.
	Enabled bool
	// Interface in VPP through which pods leave; "" = the uplink.
	Interface string
	// Address is their source address, one of the interface; invalid = its first IPv4 address.
	Address netip.Addr
	// OverlayPorts are the ports of tunnels between the nodes, "4789/UDP".
	OverlayPorts []string
}

// Reasons for which there is no SNAT.
var (
	errNoUplink  = errors.New("there is no uplink: VPP has no default route")
	errNoAddress = errors.New("has no IPv4 address")
)

// Document returns the layer of SNAT on a node, nil = no entries. hairpin is the twice-NAT address;
// invalid = none. It returns an error, and SNAT stays off, where pods reach pods of other nodes
// through the same interface without an overlay, because their addresses would be replaced as well,
// or where an interface or address is missing.
//
// NAT at an output interface translates all packets that leave there, so identity mappings exempt
// the addresses that no pod has: the node's own addresses, which tunnels use too (their packets
// have any source port), the ports of the overlay, and clients that are masqueraded already. For
// clients on the node VPP matches node ports at an exempted address only if it is in the pool as
// well: so the source address of pods is one of the node's, and pods cannot reach node ports at its
// other addresses.
func (s SNAT) Document(set *messages.InterfaceSet, hairpin netip.Addr) (*Document, error) {
	if !s.Enabled {
		return nil, nil //nolint:nilnil // No document and no error: SNAT is off.
	}
	i, err := s.exit(set)
	if err != nil {
		return nil, err
	}
	own := addresses(set, i)
	if len(own) == 0 {
		return nil, fmt.Errorf("interface %s %w", i.GetName(), errNoAddress)
	}
	pool := s.Address
	if !pool.IsValid() {
		pool = own[0]
	}
	if !slices.Contains(own, pool) {
		return nil, fmt.Errorf("%s is no address of interface %s: node ports could not be reached by pods", pool, i.GetName())
	}
	if pool == hairpin {
		return nil, fmt.Errorf("%s is the NAT loopback address, which hides clients from their own backends: set nat44.loopbackIP to another one", pool)
	}
	if err := separate(set, i.GetName()); err != nil {
		return nil, err
	}
	doc := &Document{
		APIVersion: APIVersion, Kind: Kind, NATAddresses: []string{pool.String()},
		Interfaces: []InterfaceRole{{Name: i.GetName(), Role: RoleOutput}},
	}
	for _, a := range own {
		doc.IdentityMappings = append(doc.IdentityMappings, a.String())
		for _, port := range s.OverlayPorts {
			doc.IdentityMappings = append(doc.IdentityMappings, a.String()+":"+port)
		}
	}
	// A masqueraded client must keep the NAT loopback address, or answers would not find its
	// session.
	if hairpin.IsValid() && !slices.Contains(own, hairpin) {
		doc.IdentityMappings = append(doc.IdentityMappings, hairpin.String())
	}
	return doc, nil
}

// exit returns the interface through which pods leave. It refuses interfaces with pods, because NAT
// would translate packets between pods.
func (s SNAT) exit(set *messages.InterfaceSet) (*messages.Interface, error) {
	if s.Interface == "" && set.Uplink == nil {
		return nil, errNoUplink
	}
	at := slices.IndexFunc(set.GetInterfaces(), func(i *messages.Interface) bool {
		return s.Interface == "" && i.GetSwIfIndex() == set.GetUplink() || s.Interface != "" && i.GetName() == s.Interface
	})
	if at < 0 {
		return nil, fmt.Errorf("VPP has no interface %s", s.Interface)
	}
	switch i := set.GetInterfaces()[at]; {
	case i.GetKind() == messages.InterfaceKind_INTERFACE_POD:
		return nil, fmt.Errorf("interface %s leads to pods", i.GetName())
	case i.GetKind() == messages.InterfaceKind_INTERFACE_UPLINK && len(i.GetPods()) > 0:
		return nil, fmt.Errorf("pods of this node are behind %s, for example %s: they would be translated between each other", i.GetName(), i.GetPods()[0])
	case i.GetKind() == messages.InterfaceKind_INTERFACE_INTERNAL:
		return nil, fmt.Errorf("interface %s leads nowhere", i.GetName())
	default:
		return i, nil
	}
}

// addresses returns the IPv4 addresses that the node has on an interface, in VPP's order: the first
// one is the primary address.
func addresses(set *messages.InterfaceSet, i *messages.Interface) []netip.Addr {
	texts := i.GetAddresses()
	if set.Uplink != nil && set.GetUplink() == i.GetSwIfIndex() {
		texts = set.GetNodeAddresses() // includes borrowed addresses (unnumbered)
	}
	var own []netip.Addr
	for _, p := range rule.Networks(texts) {
		if p.Addr().Is4() && unusable(p.Addr()) == "" && !slices.Contains(own, p.Addr()) {
			own = append(own, p.Addr())
		}
	}
	return own
}

// separate returns why traffic between pods of different nodes would be translated; nil = it takes
// another route.
func separate(set *messages.InterfaceSet, name string) error {
	var bare []string
	for _, p := range set.GetPeers() {
		switch {
		case p.GetNetwork() == "":
			return fmt.Errorf("the pod networks of node %s are not known (it has no podCIDRs): packets to its pods might be translated", p.GetNode())
		case slices.Contains(p.GetInterfaces(), name):
			bare = append(bare, p.GetNetwork()+" of "+p.GetNode())
		}
	}
	if n := len(bare); n > 0 {
		const most = 3
		more := ""
		if n > most {
			bare, more = bare[:most], fmt.Sprintf(" and %d more", n-most)
		}
		return fmt.Errorf("packets to pods of other nodes leave through %s without an overlay, and would be translated: %s%s",
			name, strings.Join(bare, ", "), more)
	}
	return nil
}
