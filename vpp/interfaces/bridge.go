package interfaces

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Bridge is a bridge domain with a virtual interface (bridge_domain_details).
type Bridge struct {
	// ID is bd_id, Virtual the index of the virtual interface.
	ID, Virtual uint32
	// Members are its other interfaces, by index.
	Members []Member
}

// Member is an interface in a bridge domain. VPP passes no packet between two members of the same
// split-horizon group, except in group 0.
type Member struct {
	Index uint32
	Group uint8
}

// Range is the addresses from Low to High, both included (proxy_arp_details).
type Range struct{ Low, High netip.Addr }

// isolated reports whether members reach each other only through the virtual interface.
func (b *Bridge) isolated() bool {
	for _, m := range b.Members {
		if len(b.Members) > 1 && (m.Group == 0 || m.Group != b.Members[0].Group) {
			return false
		}
	}
	return true
}

// Bridged returns the virtual interfaces of bridge domains whose members reach each other without
// them, by name, as the last Discover has read them.
func (r *Reader) Bridged() []string {
	d := deriver{raw: &r.raw}
	var names []string
	for _, b := range r.raw.Bridges {
		if i := d.find(b.Virtual); i != nil && !b.isolated() {
			names = append(names, i.Name)
		}
	}
	return names
}

// fault says why services with endpoints behind an interface cannot be served, and what to set; ""
// = they can. Pods in one bridge domain answer each other without VPP's layer 3, and so without
// NAT. Pods whose network contains the NAT loopback ask for it by ARP, and get no answer that leads
// to NAT44.
func (d *deriver) fault(i *RawInterface, in *Input) string {
	at := slices.IndexFunc(d.raw.Bridges, func(b Bridge) bool { return b.Virtual == i.Index })
	if at < 0 {
		return ""
	}
	bridge := &d.raw.Bridges[at]
	four, six := d.onLink(i, in)
	var faults []string
	if max(len(four), len(six)) > 1 && !bridge.isolated() {
		faults = append(faults, fmt.Sprintf("pods in bridge domain %d answer each other past NAT: put %s into one split-horizon group (set interface l2 bridge INTERFACE %d 1)",
			bridge.ID, d.names(bridge.Members), bridge.ID))
	}
	if missing := d.unproxied(i, four); len(four) > 1 && len(missing) > 0 {
		faults = append(faults, fmt.Sprintf("pods in split-horizon groups of bridge domain %d need proxy ARP (set interface proxy-arp %s enable, set arp proxy table-id N start FIRST end LAST), among them %s",
			bridge.ID, i.Name, missing[0]))
	}
	for _, p := range i.Addresses {
		if len(four) > 0 && in.Loopback.IsValid() && p.Contains(in.Loopback) && p.Addr() != in.Loopback {
			faults = append(faults, fmt.Sprintf("the NAT loopback %s is inside of the network %s of %s, where pods do not find it: set nat44.loopbackIP to an address outside, which other nodes and routers route to this node",
				in.Loopback, p.Masked(), i.Name))
		}
	}
	return strings.Join(faults, "; ")
}

// onLink returns the addresses of pods behind an interface that are inside of its networks, of each
// family and ordered: their pods reach each other without a router.
func (d *deriver) onLink(i *RawInterface, in *Input) (four, six []netip.Addr) {
	for _, pod := range in.Pods {
		for _, text := range pod.GetAddresses() {
			a, err := netip.ParseAddr(text)
			if a = a.Unmap(); err != nil || pod.GetHostNetwork() || !slices.Contains(d.raw.Targets[a].Interfaces, i.Index) ||
				!slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Contains(a) }) {
				continue
			}
			if a.Is4() {
				four = append(four, a)
			} else {
				six = append(six, a)
			}
		}
	}
	slices.SortFunc(four, netip.Addr.Compare)
	slices.SortFunc(six, netip.Addr.Compare)
	return slices.Compact(four), slices.Compact(six)
}

// unproxied returns those of the addresses for which an interface does not answer ARP.
func (d *deriver) unproxied(i *RawInterface, addresses []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool {
		return i.ProxyARP && slices.ContainsFunc(d.raw.ProxyARP, func(r Range) bool { return r.Low.Compare(a) <= 0 && a.Compare(r.High) <= 0 })
	})
}

// names are the names of members, shortened.
func (d *deriver) names(members []Member) string {
	var names []string
	for _, m := range members {
		if i := d.find(m.Index); i != nil {
			names = append(names, i.Name)
		}
	}
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// sortBridges orders bridge domains and their members, which VPP lists in no order.
func sortBridges(bridges []Bridge) {
	for _, b := range bridges {
		slices.SortFunc(b.Members, func(a, b Member) int { return cmp.Compare(a.Index, b.Index) })
	}
	slices.SortFunc(bridges, func(a, b Bridge) int { return cmp.Compare(a.ID, b.ID) })
}
