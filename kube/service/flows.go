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
	// Backend is where its packets go; equal to Frontend for a flow that was let through while the
	// frontend had no endpoints.
	Backend netip.AddrPort
}

// Orphans is the treatment of the UDP flows of a service that has no serving endpoint at all in the
// family of the flow.
type Orphans uint8

const (
	// OrphansDeleted removes them: the client's next packet is refused instead of vanishing. Later
	// versions of kube-proxy do this.
	OrphansDeleted Orphans = iota
	// OrphansKept leaves them until they expire, exactly as kube-proxy 1.36 does.
	OrphansKept
)

// StaleFlows returns those of the UDP flows that must be removed: they belong to a UDP frontend of
// the view, but go to an endpoint that no longer serves. UDP has no handshake that would end them,
// so a client that keeps its port would send into the void for ever. Traffic policies, hints and
// termination do not matter: an endpoint that serves keeps its flows. Flows to other addresses are
// none of the view's business. The result has the order of flows.
//
// The serving endpoints are those of all UDP ports of the service together
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
// the dataplane's flows must be looked through with StaleFlows: the serving endpoints of some UDP
// port of its slices changed. A change of the Service object alone never does: what its frontends
// lose goes away with them. Both arguments may be nil for a service that was not there or is gone.
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
