package backend

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// faults are the reasons why connections to endpoints are lost although VPP holds every row, by the
// address of the endpoint.
type faults map[string]string

// faults returns the known faults of endpoints.
func (b Backend) faults(page *status.ServicesPage) faults {
	out := faults{}
	for _, s := range b.agent.Metrics.Silent() {
		if s.Endpoint.IsValid() {
			out[s.Endpoint.Addr().String()] = fmt.Sprintf("%d of %d new connections got no answer", s.Unanswered, s.Connections)
		}
	}
	for _, address := range page.Unplaced {
		out[address] = "VPP has no interface or route for it: connections to it are lost"
	}
	networks := service.Networks(b.agent.Config.Services.ServiceCIDRs)
	if len(networks) == 0 {
		networks = service.Networks(page.ServiceCIDRs)
	}
	for _, s := range page.Services {
		for _, address := range within(networks, s.GetView()) {
			out[address] = "it is in the service CIDRs, and VPP translates a packet once: connections to it are refused"
		}
	}
	return out
}

// within returns the endpoints of a view in these networks.
func within(networks []netip.Prefix, view *messages.ServiceView) (addresses []string) {
	for _, f := range view.GetFrontends() {
		for _, b := range f.GetBackends() {
			a, err := netip.ParseAddr(b.GetAddress())
			if err == nil && slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) }) {
				addresses = append(addresses, b.GetAddress())
			}
		}
	}
	return addresses
}

// of describes the faults of the endpoints of a service in one line; "" = there is none.
func (f faults) of(view *messages.ServiceView) string {
	lost, all := f.lost(view)
	if len(lost) == 0 {
		return ""
	}
	const most = 3
	more := ""
	if len(lost) > most {
		more = fmt.Sprintf(" and %d more", len(lost)-most)
	}
	return fmt.Sprintf("%d of %d endpoints: %s%s: %s", len(lost), all, strings.Join(lost[:min(len(lost), most)], ", "), more, f[lost[0]])
}

// served says what users of a service get whose frontends are all in VPP.
func (f faults) served(view *messages.ServiceView) api.Served {
	switch lost, all := f.lost(view); len(lost) {
	case 0:
		return api.ServedAll
	case all:
		return api.ServedNone
	default:
		return api.ServedPartly
	}
}

// lost are the endpoints of a service with a fault, ordered; all counts its endpoints.
func (f faults) lost(view *messages.ServiceView) (lost []string, all int) {
	if len(f) == 0 {
		return nil, 0
	}
	seen := map[string]bool{}
	for _, frontend := range view.GetFrontends() {
		for _, b := range frontend.GetBackends() {
			if !seen[b.GetAddress()] && f[b.GetAddress()] != "" {
				lost = append(lost, b.GetAddress())
			}
			seen[b.GetAddress()] = true
		}
	}
	slices.Sort(lost)
	return lost, len(seen)
}
