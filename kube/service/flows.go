package service

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// Flow is one established UDP flow that the dataplane translates.
type Flow struct {
	// Frontend is the address and port that the client sends to.
	Frontend netip.AddrPort
	// Backend is the destination of the translated packets. It equals Frontend for a flow that
	// passed untranslated because the frontend had no endpoints.
	Backend netip.AddrPort
}

// Orphans is the treatment of UDP flows whose service has no serving endpoint in the family of the
// flow.
type Orphans uint8

const (
	// OrphansDeleted removes the flows, so that the client's next packet is refused and not lost.
	// Versions of kube-proxy after 1.36 do this.
	OrphansDeleted Orphans = iota
	// OrphansKept keeps the flows until they expire, as kube-proxy 1.36 does.
	OrphansKept
)

// StaleFlows returns the UDP flows that must be removed, in the order of flows. A stale flow
// belongs to a UDP frontend of the view and goes to an endpoint that no longer serves. UDP has no
// handshake that ends a flow, so a client that keeps its port would never reach another endpoint.
// Traffic policies, hints and termination do not matter: an endpoint that serves keeps its flows.
// Flows to frontends outside of the view are never returned.
//
// Serving endpoints are the serving endpoints of all UDP ports of the service together
// (ServiceView.serving_udp).
func StaleFlows(view *messages.ServiceView, flows []Flow, orphans Orphans) []Flow {
	frontends := map[netip.AddrPort]struct{}{}
	for _, row := range view.GetFrontends() {
		if a, ok := parseAddress(row.GetAddress()); ok && row.GetProtocol() == messages.Protocol_UDP && validPort(row.GetPort()) {
			frontends[netip.AddrPortFrom(a.ip, uint16(row.GetPort()))] = struct{}{} //nolint:gosec // validPort
		}
	}
	serving, served := servingUDP(view)
	var stale []Flow
	for _, flow := range flows {
		if _, ours := frontends[unmapPort(flow.Frontend)]; !ours {
			continue
		}
		if _, ok := serving[unmapPort(flow.Backend)]; ok {
			continue
		}
		if orphans == OrphansKept && !served[familyOf(flow.Frontend.Addr().Unmap())] {
			continue
		}
		stale = append(stale, flow)
	}
	return stale
}

// servingUDP returns the serving endpoints of a view and the families that have any.
func servingUDP(view *messages.ServiceView) (map[netip.AddrPort]struct{}, map[messages.IPFamily]bool) {
	serving := make(map[netip.AddrPort]struct{}, len(view.GetServingUdp()))
	served := map[messages.IPFamily]bool{}
	for _, text := range view.GetServingUdp() {
		if where, err := netip.ParseAddrPort(text); err == nil {
			where = unmapPort(where)
			serving[where] = struct{}{}
			served[familyOf(where.Addr())] = true
		}
	}
	return serving, served
}

// unmapPort is netip.Addr.Unmap for an address with a port.
func unmapPort(where netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(where.Addr().Unmap(), where.Port())
}

// FlowCleanupRequired reports whether a change of a service can have made UDP flows stale, so that
// StaleFlows must look at the dataplane's flows. This is the case when the serving endpoints of a
// UDP port of its slices changed. A change of the Service object alone never needs a cleanup,
// because the flows of a frontend end with the frontend. Either argument may be nil, for a service
// that did not exist or is gone.
func FlowCleanupRequired(previous, current *messages.ServiceInput) bool {
	if previous == current {
		return false
	}
	return !slices.Equal(udpEndpoints(previous), udpEndpoints(current))
}

// udpEndpoints lists the serving endpoints of the UDP ports in the slices of a service as "port
// name/ip:port", ordered, without duplicates.
func udpEndpoints(in *messages.ServiceInput) []string {
	var list []string
	for _, slice := range in.GetSlices() {
		if slice.GetFamily() == messages.IPFamily_FAMILY_UNSPECIFIED || slice.GetHeadless() {
			continue
		}
		for _, port := range slice.GetPorts() {
			if port.GetProtocol() != messages.Protocol_UDP || !validPort(port.GetPort()) {
				continue
			}
			for _, e := range slice.GetEndpoints() {
				if e.GetServing() {
					list = append(list, port.GetName()+"/"+AddressPortText(e.GetAddress(), port.GetPort()))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
