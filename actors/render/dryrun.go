package render

import (
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
)

// DryRun returns the acknowledgement of each service, in the order of the views, as if VPP were
// connected and empty. The rows are the ones that would be installed. The adapter must be new.
func DryRun[K Key](r Renderer[K], begin *messages.Begin, views []*messages.ServiceView) []*messages.RenderAck {
	adapter := newPort(r)
	// nothing is under way
	adapter.Bind(progress[K]{newQueue[K](adapter), &connection{}, &heap.Reserve{}})
	adapter.Surroundings(Surroundings{Begin: begin})
	for _, view := range views {
		adapter.Plan(view.GetKey(), view)
	}
	adapter.Settle(Passed)
	acks := make([]*messages.RenderAck, len(views))
	for i, view := range views {
		key := view.GetKey()
		acks[i] = &messages.RenderAck{Key: key, Renderer: r.Name}
		for _, k := range adapter.Objects(key) {
			if owner := adapter.Owner(k); owner != "" && owner != key {
				acks[i].Conflicts = append(acks[i].Conflicts, &messages.Conflict{Frontend: k.String(), Owner: owner})
			}
		}
		adapter.Acknowledge(acks[i], key, false)
		refused := map[string]bool{}
		for _, row := range acks[i].GetRows() {
			refused[row.GetVip()] = row.GetError() != ""
		}
		wanted, _ := adapter.Rows(key, false)
		acks[i].Rows = slices.DeleteFunc(wanted, func(r *messages.RowState) bool { return refused[r.GetVip()] })
	}
	return acks
}
