package render

import (
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// DryRun returns what a renderer would acknowledge to each service if VPP were connected and empty,
// in the order of the views, with the rows as it would install them. The adapter must be new.
func DryRun[K Key](adapter Adapter[K], begin *messages.Begin, views []*messages.ServiceView) []*messages.RenderAck {
	adapter.Bind(idle[K]{})
	adapter.Surroundings(Surroundings{Begin: begin})
	for _, view := range views {
		adapter.Plan(view.GetKey(), view)
	}
	adapter.Settle(Passed)
	acks := make([]*messages.RenderAck, len(views))
	for i, view := range views {
		key := view.GetKey()
		acks[i] = &messages.RenderAck{Key: key, Renderer: adapter.Kind().Name}
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

// idle is the Progress of a dry run: nothing is under way.
type idle[K Key] struct{}

// Dirty satisfies Progress.
func (idle[K]) Dirty(K) bool { return false }

// Refusal satisfies Progress.
func (idle[K]) Refusal(K) (int, error) { return 0, nil }

// Pending satisfies Progress.
func (idle[K]) Pending() int { return 0 }

// Refused satisfies Progress.
func (idle[K]) Refused() (int, error) { return 0, nil }

// Read satisfies Progress.
func (idle[K]) Read(string) {}
