package render

import (
	"fmt"
	"iter"
	"slices"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// port is an adapter with all abilities: its own, and plain ones in place of missing ones.
type port[K Key] struct {
	Adapter[K]
	wishes[K]
	Bound[K]
	Settler
	Keeper[K]
	Gated[K]
	Configured
	RoleGiver
	Acknowledger
	Shower
	Speaker
	Barred
	Sizer[K]
	Correspondent
}

// newPort finds out, once, which abilities the adapter has.
func newPort[K Key](r Renderer[K]) *port[K] {
	a, none := r.Adapter, plain[K]{r}
	return &port[K]{
		Adapter: a, wishes: r.Claims, Bound: able[Bound[K]](a, none), Settler: able[Settler](a, none), Keeper: able[Keeper[K]](a, none),
		Gated: able[Gated[K]](a, none), Configured: able[Configured](a, none), RoleGiver: able[RoleGiver](a, none),
		Acknowledger: able[Acknowledger](a, none), Shower: able[Shower](a, none), Speaker: able[Speaker](a, none), Barred: able[Barred](a, none),
		Sizer: able[Sizer[K]](a, none), Correspondent: able[Correspondent](a, none),
	}
}

// differing returns the objects for which asked is true and which VPP does not hold as wanted.
func (p *port[K]) differing(asked func(K) bool) (keys []K) {
	seen := map[K]bool{}
	for _, all := range []iter.Seq[K]{p.Held(), p.Keys()} {
		for k := range all {
			if !seen[k] && asked(k) && p.Cost(k) > 0 {
				keys = append(keys, k)
			}
			seen[k] = true
		}
	}
	return keys
}

// able returns the adapter if it has the ability, and none otherwise.
func able[T any](adapter any, none T) T {
	if a, is := adapter.(T); is {
		return a
	}
	return none
}

// GivesRoles reports whether the renderer gives interfaces their roles.
func (r Renderer[K]) GivesRoles() bool {
	_, gives := r.Adapter.(RoleGiver)
	return gives
}

// plain has every ability in its plainest form: claimed objects are wanted, and only a removal
// waits for the barrier.
type plain[K Key] struct{ Renderer[K] }

// Bind satisfies Bound.
func (plain[K]) Bind(Progress[K]) {}

// Settle satisfies Settler.
func (plain[K]) Settle(Phase) {}

// Wanted satisfies Keeper.
func (p plain[K]) Wanted(k K) bool { return p.Claims.Claimed(k) }

// Settings satisfies Configured.
func (plain[K]) Settings() bool { return true }

// RolesRefused satisfies RoleGiver.
func (plain[K]) RolesRefused() string { return "" }

// Acknowledge satisfies Acknowledger.
func (plain[K]) Acknowledge(*messages.RenderAck, string, bool) {}

// Rows satisfies Shower.
func (plain[K]) Rows(string, bool) (wanted, held []*messages.RowState) { return nil, nil }

// Warning satisfies Speaker.
func (plain[K]) Warning() string { return "" }

// Summary satisfies Speaker.
func (p plain[K]) Summary() string {
	return fmt.Sprintf("%d %s of ours", len(slices.Collect(p.Adapter.Held())), p.Noun)
}

// Bytes satisfies Sizer.
func (plain[K]) Bytes(K) (wanted, held int) { return 0, 0 }

// Asks satisfies Correspondent.
func (plain[K]) Asks() []string { return nil }

// Handle satisfies Correspondent.
func (plain[K]) Handle(*runtime.Context, any) {}

// After satisfies Correspondent.
func (plain[K]) After(*runtime.Context, bool) {}

// Gate satisfies Gated.
func (p plain[K]) Gate(k K, phase Phase) Gate {
	if phase < Passed && !p.Wanted(k) {
		return Closed
	}
	return Open
}

// Barred satisfies Barred.
func (plain[K]) Barred() string { return "" }
