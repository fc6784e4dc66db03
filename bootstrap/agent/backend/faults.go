package backend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/status"
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
	return out
}

// of describes the faults of the endpoints of a service in one line; "" = there is none.
func (f faults) of(view *messages.ServiceView) string {
	if len(f) == 0 {
		return ""
	}
	var lost []string
	all := map[string]bool{}
	for _, frontend := range view.GetFrontends() {
		for _, b := range frontend.GetBackends() {
			if !all[b.GetAddress()] && f[b.GetAddress()] != "" {
				lost = append(lost, b.GetAddress())
			}
			all[b.GetAddress()] = true
		}
	}
	if len(lost) == 0 {
		return ""
	}
	slices.Sort(lost)
	const most = 3
	more := ""
	if len(lost) > most {
		more = fmt.Sprintf(" and %d more", len(lost)-most)
	}
	return fmt.Sprintf("%d of %d endpoints: %s%s: %s", len(lost), len(all), strings.Join(lost[:min(len(lost), most)], ", "), more, f[lost[0]])
}
