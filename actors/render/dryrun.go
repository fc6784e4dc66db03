package render

import (
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
)

// DryRun returns the acknowledgement of each service, in the order of the views, as if VPP were
// connected and empty. The rows are the ones that would be installed. The renderer must be new.
func DryRun[K Key](r Renderer[K], begin *messages.Begin, views []*messages.ServiceView) []*messages.RenderAck {
	// nothing is under way
	r.progress(newQueue(r.Claims, r.Kind.Next), &connection{}, &heap.Reserve{})
	r.Kind.Settle(Surroundings{Begin: begin})
	for _, view := range views {
		r.Kind.Plan(view.GetKey(), view)
	}
	r.Kind.Settle(Surroundings{Begin: begin, Phase: Passed})
	acks := make([]*messages.RenderAck, len(views))
	for i, view := range views {
		key := view.GetKey()
		acks[i] = &messages.RenderAck{Key: key, Renderer: r.Name}
		for _, k := range r.Claims.Objects(key) {
			if owner := r.Claims.Owner(k); owner != "" && owner != key {
				acks[i].Conflicts = append(acks[i].Conflicts, &messages.Conflict{Frontend: k.String(), Owner: owner})
			}
		}
		r.Kind.Acknowledge(acks[i], key, false)
		refused := map[string]bool{}
		for _, row := range acks[i].GetRows() {
			refused[row.GetVip()] = row.GetError() != ""
		}
		wanted, _ := r.Kind.Rows(key, false)
		acks[i].Rows = slices.DeleteFunc(wanted, func(r *messages.RowState) bool { return refused[r.GetVip()] })
	}
	return acks
}
