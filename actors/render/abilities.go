package render

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Bound is an adapter that looks at the work queue.
type Bound[K Key] interface {
	// Bind gives the adapter its view of the queue, before any other method is called.
	Bind(progress Progress[K])
}

// Progress is an adapter's view of the work queue.
type Progress[K Key] interface {
	// Dirty reports whether an object may not be as wanted.
	Dirty(k K) bool
	// Refusal is how often in a row VPP refused an object, and why last; nil = it did not.
	Refusal(k K) (times int, err error)
	// Pending counts the objects that are being worked on; refused ones are not among them.
	Pending() int
	// Refused is how often in a row VPP refused settings, and why last; nil = it did not.
	Refused() (times int, err error)
	// Read has VPP read soon, before anything else is sent, for the reason.
	Read(reason string)
	// Memory is how much of VPP's memory is free: objects may not grow where it is critical. When
	// it is better again, the objects that are not as wanted are looked at.
	Memory() heap.Level
}

// Settler is an adapter whose plan depends on several services at once, or on the barrier.
type Settler interface {
	// Settle completes the plan, before work is chosen.
	Settle(phase Phase)
}

// Keeper is an adapter that keeps objects in VPP beyond the claims.
type Keeper[K Key] interface {
	// Wanted reports whether VPP should hold an object of ours under the key.
	Wanted(k K) bool
}

// Gated is an adapter of which an object may have to wait for more than its removal does, which
// waits for the barrier. Gate says whether one that is not in sync may be changed now.
type Gated[K Key] interface {
	Gate(k K, phase Phase) Gate
}

// Gate says whether an object may be changed now.
type Gate uint8

const (
	// Open: it may.
	Open Gate = iota
	// Blocked: it depends on another object that is not in sync.
	Blocked
	// Closed: a service that has not rendered may want it. It waits for the barrier.
	Closed
)

// Configured is an adapter with settings that concern all objects.
type Configured interface {
	// Settings reports whether the settings are in VPP, as far as the adapter knows.
	Settings() bool
}

// RoleGiver is an adapter that gives interfaces their roles, so that commands about interfaces wait
// for it.
type RoleGiver interface {
	// RolesRefused returns why VPP refused roles; "" = it did not.
	RolesRefused() string
}

// Acknowledger is an adapter that knows more about a service than whether it is in sync.
type Acknowledger interface {
	// Acknowledge completes the acknowledgement of a service: rows, approximations, frontends that
	// VPP cannot serve.
	Acknowledge(ack *messages.RenderAck, service string, known bool)
}

// Shower is an adapter whose objects operators see as rows.
type Shower interface {
	// Rows returns the rows of a service: wanted and, if known, held.
	Rows(service string, known bool) (wanted, held []*messages.RowState)
}

// Speaker is an adapter that describes the renderer as a whole.
type Speaker interface {
	// Warning tells operators about a problem of a renderer that is in sync; "" = there is none.
	Warning() string
	// Summary describes for the journal what VPP holds.
	Summary() string
}

// Sizer is an adapter that knows how much of VPP's memory its objects need.
type Sizer[K Key] interface {
	// Bytes returns how many bytes of VPP's main heap an object needs as it is wanted, and as VPP
	// holds it; 0 = there is none.
	Bytes(k K) (wanted, held int)
}

// Correspondent is an adapter with messages of its own.
type Correspondent interface {
	// Asks are the paths of the actors whose state it needs; each is asked at the start.
	Asks() []string
	// Handle takes a message that is not the Driver's.
	Handle(c *runtime.Context, msg any)
	// After is called when a message has been handled: the adapter may send what follows from it.
	After(c *runtime.Context, known bool)
}

// port is an adapter with all abilities: its own, and plain ones in place of those that it lacks.
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
	Sizer[K]
	Correspondent
}

// newPort finds out, once, which abilities an adapter has.
func newPort[K Key](r Renderer[K]) *port[K] {
	a, none := r.Adapter, plain[K]{r}
	return &port[K]{
		Adapter: a, wishes: r.Claims, Bound: able[Bound[K]](a, none), Settler: able[Settler](a, none), Keeper: able[Keeper[K]](a, none),
		Gated: able[Gated[K]](a, none), Configured: able[Configured](a, none), RoleGiver: able[RoleGiver](a, none),
		Acknowledger: able[Acknowledger](a, none), Shower: able[Shower](a, none), Speaker: able[Speaker](a, none),
		Sizer: able[Sizer[K]](a, none), Correspondent: able[Correspondent](a, none),
	}
}

// differing are the objects that are not as wanted, of those that are asked for.
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

// able is the adapter, if it has the ability, or else the one that stands in.
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

// Remove removes the agent's objects from VPP, see Remover. It may be called without a Driver.
func (r Renderer[K]) Remove(ctx context.Context, vpp link.Caller, removal *Removal) error {
	if a, is := r.Adapter.(Remover); is {
		return a.Remove(ctx, vpp, removal)
	}
	return nil
}

// plain stands in for the abilities that an adapter lacks: what is claimed is wanted, and only a
// removal waits for the barrier.
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
