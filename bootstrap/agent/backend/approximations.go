package backend

import (
	"cmp"
	"slices"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/messages"
)

// approximations counts the services for each general reason of a renderer why a row is not exact,
// or missing.
func approximations(services []*messages.ServiceStatus) []api.Approximation {
	type reason struct{ renderer, why string }
	found := map[reason]*api.Approximation{}
	for _, s := range services {
		counted := map[reason]bool{}
		count := func(renderer, wanted, rendered, why string) {
			r := reason{renderer, why}
			if counted[r] {
				return
			}
			counted[r] = true
			if found[r] == nil {
				found[r] = &api.Approximation{Renderer: renderer, Wanted: wanted, Rendered: rendered, Why: why}
			}
			found[r].Services++
		}
		for _, ack := range s.GetRenders() {
			for _, a := range ack.GetApproximations() {
				if !a.GetParticular() {
					count(ack.GetRenderer(), a.GetWanted(), a.GetRendered(), a.GetWhy())
				}
			}
			for _, e := range ack.GetUnrendered() {
				if e.GetGeneral() != "" {
					count(ack.GetRenderer(), "served", "not served", e.GetGeneral())
				}
			}
		}
	}
	all := make([]api.Approximation, 0, len(found))
	for _, a := range found {
		all = append(all, *a)
	}
	slices.SortFunc(all, func(a, b api.Approximation) int {
		return cmp.Or(cmp.Compare(a.Renderer, b.Renderer), cmp.Compare(a.Why, b.Why))
	})
	return all
}
