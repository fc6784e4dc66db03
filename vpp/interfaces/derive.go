package interfaces

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// Derive computes the complete interface set from the states of VPP and Kubernetes. It is pure: it
// neither changes nor keeps its arguments, and the order of interfaces, pods and endpoints does not
// matter. The generation is left to the caller.
func Derive(raw Raw, in Input) *messages.InterfaceSet {
	d := deriver{raw: &raw, pods: podsByInterface(&raw, &in), endpoints: behindAny(&raw, in.LocalEndpoints), nodes: behindAny(&raw, in.NodeAddresses)}
	d.attach(&in)
	set := &messages.InterfaceSet{Boot: in.Boot, Complete: in.Complete, Peers: d.peers(in.Peers)}
	d.uplink, d.hasUplink = d.findUplink()
	for _, i := range sorted(raw.Interfaces) {
		one := d.describe(i)
		// An interface counts as detached only if nothing else gives it a role.
		one.Detached = in.Detached[i.Name] && !one.GetFrontend() && !one.GetBackend()
		one.OtherProtocols = d.otherProtocols(i, one, &in)
		one.Fault = d.fault(i, &in)
		set.Interfaces = append(set.Interfaces, one)
	}
	set.Unplaced = d.unplaced(&in)
	if d.hasUplink {
		set.Uplink = &d.uplink
	}
	set.NodeAddresses, set.Tables = d.nodeAddresses(in.NodeAddresses), d.tables(&in)
	set.Unanswered, set.Unanswered6 = d.unanswered()
	return set
}

// deriver holds the inputs for the description of each interface.
type deriver struct {
	raw *Raw
	// pods, endpoints and nodes are keyed by sw_if_index: the interfaces that lead to pods,
	// local endpoints and addresses of this node.
	pods      map[uint32][]string
	endpoints map[uint32]bool
	nodes     map[uint32]bool
	uplink    uint32
	hasUplink bool
}

// attach adds the pods that the CNI has reported behind an interface, and so the endpoints behind
// it: the CNI reports a pod before VPP has a route to it.
func (d *deriver) attach(in *Input) {
	// Without reports of the CNI the routes of VPP decide alone, and the search below can be
	// skipped.
	if len(in.Attached) == 0 {
		return
	}
	backing := map[string]bool{} // pods with a local endpoint
	for _, pod := range in.Pods {
		if slices.ContainsFunc(pod.GetAddresses(), func(a string) bool { return slices.Contains(in.LocalEndpoints, a) }) {
			backing[pod.GetNamespace()+"/"+pod.GetName()] = true
		}
	}
	for k := range d.raw.Interfaces {
		i := &d.raw.Interfaces[k]
		for _, pod := range in.Attached[i.Name] {
			d.endpoints[i.Index] = d.endpoints[i.Index] || backing[pod]
			if at, found := slices.BinarySearch(d.pods[i.Index], pod); !found {
				d.pods[i.Index] = slices.Insert(d.pods[i.Index], at, pod)
			}
		}
	}
}

// describe returns the message of one interface. An interface that is down gets no role, because no
// client can enter through it.
func (d *deriver) describe(i *RawInterface) *messages.Interface {
	kind := d.kind(i)
	frontend := i.AdminUp && kind != messages.InterfaceKind_INTERFACE_INTERNAL && d.layer3(i)
	own := ""
	if addr := d.raw.ownAddress(i); addr.IsValid() {
		own = addr.String()
	}
	return &messages.Interface{
		OwnAddress: own,
		SwIfIndex:  i.Index,
		Name:       i.Name,
		Kind:       kind,
		AdminUp:    i.AdminUp,
		LinkUp:     i.LinkUp,
		Addresses:  texts(i.Addresses),
		Pods:       d.pods[i.Index],
		Frontend:   frontend,
		Backend:    frontend && (d.endpoints[i.Index] || kind == messages.InterfaceKind_INTERFACE_UPLINK || i.BVI || isTunnel(i.Device)),
		Local:      frontend && d.local(i, kind),
	}
}

// local reports whether only pods and processes of this node are behind an interface. An interface
// of unknown purpose is not local: its clients are treated as remote, which allows less.
func (d *deriver) local(i *RawInterface, kind messages.InterfaceKind) bool {
	switch {
	case kind == messages.InterfaceKind_INTERFACE_POD:
		return true
	case kind == messages.InterfaceKind_INTERFACE_UPLINK || i.BVI || isTunnel(i.Device):
		return false
	default:
		return d.endpoints[i.Index] || d.nodes[i.Index] || isTap(i) || linkLocal(i)
	}
}

// kind classifies an interface. The default route decides before pods: on a node whose pods are
// reached through the uplink it stays the uplink.
func (d *deriver) kind(i *RawInterface) messages.InterfaceKind {
	switch {
	case isLocal0(i):
		return messages.InterfaceKind_INTERFACE_INTERNAL
	case d.hasUplink && i.Index == d.uplink:
		return messages.InterfaceKind_INTERFACE_UPLINK
	case len(d.pods[i.Index]) > 0:
		return messages.InterfaceKind_INTERFACE_POD
	case isLone(i):
		return messages.InterfaceKind_INTERFACE_INTERNAL
	default:
		return messages.InterfaceKind_INTERFACE_OTHER
	}
}

// layer3 reports whether packets can be routed from an interface: bridged ones have neither
// addresses nor routes.
func (d *deriver) layer3(i *RawInterface) bool {
	return len(i.Addresses) > 0 || i.Unnumbered || i.BVI || len(d.pods[i.Index]) > 0 || d.endpoints[i.Index] ||
		d.hasUplink && i.Index == d.uplink
}

// findUplink returns the interface of the default route, IPv4 before IPv6. A lone loopback comes
// last.
func (d *deriver) findUplink() (uint32, bool) {
	v4, v6 := d.exit(d.raw.Default4), d.exit(d.raw.Default6)
	for _, lone := range []bool{false, true} {
		for _, i := range []*RawInterface{v4, v6} {
			if i != nil && isLone(i) == lone {
				return i.Index, true
			}
		}
	}
	return 0, false
}

// exit returns the interface of a target, or nil. Of several, the smallest index is taken, so that
// the answer does not change with the order in which VPP lists them. A lone loopback comes last,
// and one that cannot route is none: VPP keeps routes of deleted interfaces, and gives their
// indices to others.
func (d *deriver) exit(t Target) (found *RawInterface) {
	for _, index := range slices.Sorted(slices.Values(t.Interfaces)) {
		switch i := d.find(index); {
		case i == nil || isLocal0(i):
		case !isLone(i):
			return i
		case found == nil && (len(i.Addresses) > 0 || i.Unnumbered):
			found = i
		}
	}
	return found
}

// isLone recognises loopbacks that lead nowhere, because they are not in a bridge domain.
func isLone(i *RawInterface) bool { return strings.EqualFold(i.Device, "loopback") && !i.BVI }

// find returns an interface by its index, or nil.
func (d *deriver) find(index uint32) *RawInterface {
	for k := range d.raw.Interfaces {
		if d.raw.Interfaces[k].Index == index {
			return &d.raw.Interfaces[k]
		}
	}
	return nil
}

// podsByInterface returns the pods behind each interface, every list ordered and without
// duplicates.
func podsByInterface(raw *Raw, in *Input) map[uint32][]string {
	pods := map[uint32][]string{}
	for _, pod := range in.Pods {
		if pod.GetHostNetwork() {
			continue
		}
		for _, index := range behind(raw, pod.GetAddresses()) {
			pods[index] = append(pods[index], pod.GetNamespace()+"/"+pod.GetName())
		}
	}
	for index, names := range pods {
		slices.Sort(names)
		pods[index] = slices.Compact(names)
	}
	return pods
}

// behindAny returns the interfaces that lead to one of the addresses.
func behindAny(raw *Raw, addresses []string) map[uint32]bool {
	found := map[uint32]bool{}
	for _, index := range behind(raw, addresses) {
		found[index] = true
	}
	return found
}

// behind returns the interfaces that the addresses lead to, with duplicates. Addresses that only
// the default route covers lead nowhere: their pod is not connected to VPP yet.
func behind(raw *Raw, addresses []string) []uint32 {
	var all []uint32
	for _, text := range addresses {
		a, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		if t := raw.Targets[a.Unmap()]; t.leads() {
			all = append(all, t.Interfaces...)
		}
	}
	return all
}

// sorted returns the interfaces by index. VPP lists each once; of a duplicate, the first is used.
func sorted(interfaces []RawInterface) []*RawInterface {
	all := make([]*RawInterface, len(interfaces))
	for k := range interfaces {
		all[k] = &interfaces[k]
	}
	slices.SortStableFunc(all, func(a, b *RawInterface) int { return cmp.Compare(a.Index, b.Index) })
	return slices.CompactFunc(all, func(a, b *RawInterface) bool { return a.Index == b.Index })
}

// texts writes prefixes as "ip/len".
func texts(prefixes []netip.Prefix) []string {
	var all []string
	for _, p := range prefixes {
		all = append(all, p.String())
	}
	return all
}

// isLocal0 recognises the interface that every VPP has and that carries no packets.
func isLocal0(i *RawInterface) bool {
	return i.Index == 0 || i.Name == "local0"
}

// isTunnel recognises interfaces that lead to other nodes by their device type (VNET_DEVICE_CLASS
// names of VPP 25.10).
func isTunnel(device string) bool {
	device = strings.ToLower(device)
	for _, word := range []string{"vxlan", "geneve", "gre", "gtpu", "ipip", "ipsec", "wireguard", "mpls", "lisp", "6rd"} {
		if strings.Contains(device, word) {
			return true
		}
	}
	return false
}

// isTap recognises interfaces to the kernel of this machine. Virtio network cards have the same
// device type, so the name decides.
func isTap(i *RawInterface) bool {
	return i.Device == "virtio" && (strings.HasPrefix(i.Name, "tap") || strings.HasPrefix(i.Name, "tun"))
}

// linkLocal recognises the subnets that CNIs use between VPP and the host: with link-local
// addresses only, no other machine can be behind the interface.
func linkLocal(i *RawInterface) bool {
	four := slices.DeleteFunc(slices.Clone(i.Addresses), func(p netip.Prefix) bool { return !p.Addr().Is4() })
	return len(four) > 0 && !slices.ContainsFunc(four, func(p netip.Prefix) bool { return !p.Addr().IsLinkLocalUnicast() })
}
