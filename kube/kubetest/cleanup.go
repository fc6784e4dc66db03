package kubetest

import (
	"slices"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// CleanupRequired evaluates Outcome.UDPFlowCleanupRequired on the inputs before and after a step,
// by their keys: whether kube-proxy must look for stale UDP flows. This is the case when the
// serving endpoints of a UDP port changed in the slices of a service. A change of a Service object
// alone needs no cleanup.
//
// Troupe has no such decision: a renderer removes the endpoint from its row, and VPP ends the flows
// of the endpoint (TestStaleUDPFlowsEnd in actors/render/nat44).
func CleanupRequired(previous, current map[string]*messages.ServiceInput) bool {
	for key, in := range current {
		if !slices.Equal(udpEndpoints(previous[key]), udpEndpoints(in)) {
			return true
		}
	}
	for key, in := range previous {
		if current[key] == nil && len(udpEndpoints(in)) > 0 {
			return true
		}
	}
	return false
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
			if port.GetProtocol() != messages.Protocol_UDP || port.GetPort() == 0 {
				continue
			}
			for _, e := range slice.GetEndpoints() {
				if e.GetServing() {
					list = append(list, port.GetName()+"/"+service.AddressPortText(e.GetAddress(), port.GetPort()))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
