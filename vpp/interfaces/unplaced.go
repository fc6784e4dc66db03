package interfaces

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// unplaced returns the addresses to which no interface leads that is up: all addresses of a pod
// without an interface, and local endpoints without a route. VPP may route only one family: then
// endpoints of the other one do not count.
func (d *deriver) unplaced(in *Input) []string {
	up := map[uint32]bool{}
	for k := range d.raw.Interfaces {
		up[d.raw.Interfaces[k].Index] = d.raw.Interfaces[k].AdminUp
	}
	leads := func(address string) bool {
		return slices.ContainsFunc(behind(d.raw, []string{address}), func(index uint32) bool { return up[index] })
	}
	placed := map[string]bool{} // pods with an interface
	for index, pods := range d.pods {
		for _, pod := range pods {
			placed[pod] = placed[pod] || up[index]
		}
	}
	routed := map[bool]bool{} // by "is IPv4"
	for to, target := range d.raw.Targets {
		routed[to.Is4()] = routed[to.Is4()] || target.leads()
	}
	lost := map[string]bool{} // endpoints that no interface leads to
	for _, text := range in.LocalEndpoints {
		if a, err := netip.ParseAddr(text); err == nil && routed[a.Unmap().Is4()] && !leads(text) && !slices.Contains(in.NodeAddresses, text) {
			lost[text] = true
		}
	}
	var all []string
	for _, pod := range in.Pods {
		for _, text := range pod.GetAddresses() {
			if !pod.GetHostNetwork() && (lost[text] || !placed[pod.GetNamespace()+"/"+pod.GetName()]) {
				all = append(all, text)
			}
			delete(lost, text)
		}
	}
	for text := range lost { // without a pod: another machine may be behind the default route
		if a := netip.MustParseAddr(text).Unmap(); !d.own(a) && len(d.raw.Targets[a].Interfaces) == 0 {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// own reports whether an interface of VPP has an address.
func (d *deriver) own(a netip.Addr) bool {
	return slices.ContainsFunc(d.raw.Interfaces, func(i RawInterface) bool {
		return slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr() == a })
	})
}

// Lost returns why VPP forwards nothing of this node; "" = it forwards. A VPP without a default
// route forwards if other interfaces lead out of the node; hadUplink says that there was a default
// route before, so that its absence is a loss.
func Lost(set *messages.InterfaceSet, pods []*messages.Pod, hadUplink bool) string {
	out, uplink, placed := false, "", false
	for _, i := range set.GetInterfaces() {
		out = out || i.GetFrontend() && i.GetKind() == messages.InterfaceKind_INTERFACE_OTHER
		placed = placed || i.GetFrontend() && len(i.GetPods()) > 0
		if i.GetKind() == messages.InterfaceKind_INTERFACE_UPLINK && !i.GetAdminUp() {
			uplink = i.GetName()
		}
	}
	waiting := 0
	for _, pod := range pods {
		if !pod.GetHostNetwork() && len(pod.GetAddresses()) > 0 {
			waiting++
		}
	}
	switch {
	case uplink != "":
		return fmt.Sprintf("the uplink %s is down in VPP", uplink)
	case set.Uplink == nil && (hadUplink || !out):
		return "VPP has no uplink: no default route leads to an interface"
	case waiting > 0 && !placed:
		return fmt.Sprintf("VPP has no interface of any of the %d pods of this node", waiting)
	}
	return ""
}
