package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// Use says how this node uses one endpoint of a service.
type Use struct {
	Slice    *messages.EndpointSlice
	Endpoint *messages.Endpoint
	// Frontends counts the frontends with the family and a port of the slice, without frontends
	// that refuse all clients. Forwards counts the frontends among them that forward to this
	// endpoint.
	Frontends, Forwards int
	// Why is the reason why not every frontend uses the endpoint; "" if every frontend does.
	Why string
}

// Uses explains for each endpoint of a service whether this node uses it, in the order of the
// slices. The view must be the result of Resolve for the input.
func Uses(in *messages.ServiceInput, node *messages.NodeContext, view *messages.ServiceView) []Use {
	u := usage{in.GetService(), node.GetNode(), view, map[*messages.Frontend]map[string]bool{}}
	for _, f := range view.GetFrontends() {
		if f.GetAction() != messages.Action_ACTION_REJECT && !closed(f) {
			// A frontend that rejects has no endpoint anywhere, so it does not count.
			at := map[string]bool{}
			for _, b := range f.GetBackends() {
				at[b.GetAddress()] = true
			}
			u.forwards[f] = at
		}
	}
	var out []Use
	for _, slice := range in.GetSlices() {
		frontends := u.of(slice)
		fault := u.fault(slice)
		for _, e := range slice.GetEndpoints() {
			one := Use{Slice: slice, Endpoint: e, Frontends: len(frontends)}
			for _, at := range frontends {
				if at[e.GetAddress()] {
					one.Forwards++
				}
			}
			one.Why = fault
			if fault == "" && (one.Forwards == 0 || one.Forwards < one.Frontends || !e.GetReady()) {
				one.Why = u.why(slice, &one)
			}
			out = append(out, one)
		}
	}
	return out
}

// usage holds the input of Uses and the destinations of each frontend.
type usage struct {
	service *messages.Service
	node    *messages.Node
	view    *messages.ServiceView
	// forwards are the addresses to which each frontend forwards; a frontend that drops has none.
	forwards map[*messages.Frontend]map[string]bool
}

// of returns the frontends that could forward to endpoints of a slice.
func (u *usage) of(slice *messages.EndpointSlice) (out []map[string]bool) {
	for f, at := range u.forwards {
		a, _ := parseAddress(f.GetAddress())
		offered := slices.ContainsFunc(slice.GetPorts(), func(p *messages.EndpointPort) bool {
			return p.GetName() == f.GetPortName() && p.GetProtocol() == f.GetProtocol()
		})
		if offered && a.family() == slice.GetFamily() {
			out = append(out, at)
		}
	}
	return out
}

// fault returns the reason why no endpoint of a slice is used; "" if they may be used.
func (u *usage) fault(slice *messages.EndpointSlice) string {
	ports := func(p *messages.ServicePort) bool {
		return slices.ContainsFunc(slice.GetPorts(), func(of *messages.EndpointPort) bool { return nameOf(of) == nameOf(p) })
	}
	clusterIP := func(text string) bool {
		a, ok := parseAddress(text)
		return ok && a.family() == slice.GetFamily()
	}
	switch {
	case u.service == nil:
		return "there is no such service"
	case u.view.GetNotServed()+u.view.GetRefused() != "":
		return "the service is not served: " + u.view.GetNotServed() + u.view.GetRefused()
	case slice.GetHeadless():
		return "the slice has the label of a headless service"
	case slice.GetFamily() == messages.IPFamily_FAMILY_UNSPECIFIED:
		return "the slice has host names"
	case !slices.ContainsFunc(u.service.GetClusterIps(), clusterIP):
		return fmt.Sprintf("the service has no cluster IP of %s", familyWord(slice.GetFamily()))
	case !slices.ContainsFunc(u.service.GetPorts(), ports):
		return "the slice has no port of the service, by name and protocol"
	default:
		return ""
	}
}

// why returns the first reason that applies why not every frontend forwards to an endpoint.
func (u *usage) why(slice *messages.EndpointSlice, use *Use) string {
	e := use.Endpoint
	a, ok := parseAddress(e.GetAddress())
	local := u.service.GetInternalPolicy() == messages.TrafficPolicy_POLICY_LOCAL || u.service.GetExternalPolicy() == messages.TrafficPolicy_POLICY_LOCAL
	zones, nodes := e.GetZoneHints(), e.GetNodeHints()
	switch {
	case !ok || a.family() != slice.GetFamily():
		return fmt.Sprintf("not an address of %s that can be used", familyWord(slice.GetFamily()))
	case !e.GetReady() && use.Forwards > 0 && e.GetTerminating() && e.GetServing():
		return "terminating, and used because no other endpoint is ready"
	case !e.GetReady() && use.Forwards > 0:
		return "not ready in this slice; the slice in which it is ready counts"
	case !e.GetReady() && e.GetTerminating() && e.GetServing():
		return "terminating, while other endpoints are ready"
	case !e.GetReady() && e.GetTerminating():
		return "terminating and not serving"
	case !e.GetReady():
		return "not ready"
	case local && e.GetNode() != u.node.GetName():
		return fmt.Sprintf("on node %q: not used where the traffic policy is Local", e.GetNode())
	case len(nodes) > 0 && !slices.Contains(nodes, u.node.GetName()):
		return "hinted for other nodes: " + strings.Join(nodes, ", ")
	case len(zones) > 0 && !slices.Contains(zones, u.node.GetZone()):
		return fmt.Sprintf("hinted for zones %s, this node is in %q", strings.Join(zones, ", "), u.node.GetZone())
	case use.Forwards == 0:
		return "no frontend forwards to it"
	default:
		return "some frontends do not forward to it"
	}
}

// familyWord is the name of a family.
func familyWord(f messages.IPFamily) string {
	if f == messages.IPFamily_IPV6 {
		return "IPv6"
	}
	return "IPv4"
}
