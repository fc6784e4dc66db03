package render

import (
	"context"
	"fmt"
	"iter"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Key names one object that a renderer keeps in VPP: a NAT44 row, a route.
type Key interface {
	comparable
	fmt.Stringer
}

// Renderer is an adapter with its names and claims.
type Renderer[K Key] struct {
	// Name is the name of the actor, the part of the node's health and the renderer in metrics:
	// "nat44".
	Name string
	// Noun is the word for its objects: "rows".
	Noun string
	// Claims are a *Claims: the wishes of the services. Only Plan of the adapter changes them;
	// the Driver reads them.
	Claims wishes[K]
	// Adapter is the part that differs between renderers. It may have further abilities:
	// Settler, Gated and the others in abilities.go.
	Adapter Adapter[K]
}

// Adapter is the part that differs between renderers; everything else is in the Driver. It keeps
// the content of VPP as plain data. Only the Driver's actor calls its methods, which compute and
// never block. Functions that talk to VPP (Reader, Work) are returned and run in a goroutine; they
// must not touch the Adapter.
//
// All methods are idempotent: the same input again changes nothing.
type Adapter[K Key] interface {
	Plan[K]
	Actual[K]
	Apply[K]
}

// Plan enters into the claims what VPP should hold. The Driver takes the changed objects from the
// claims.
type Plan[K Key] interface {
	// Plan takes the view of a service; nil = the service is gone.
	Plan(service string, view *messages.ServiceView)
	// Surroundings takes the other input of planning.
	Surroundings(s Surroundings)
}

// Actual is the content of VPP, as far as it is known.
type Actual[K Key] interface {
	// Forget drops the content of VPP, because the connection has ended. restarted says that
	// VPP is another process.
	Forget(restarted bool)
	// Reader returns a function that reads the content of VPP. known says whether the present
	// belief is certain.
	Reader(known bool) func(ctx context.Context, vpp link.Caller) (any, error)
	// Adopt takes a reading and, with known, compares it with the belief before. It returns the
	// objects that differ: they were modified outside of the agent. settings counts the
	// settings and roles that differ.
	Adopt(reading any, known bool) (drifted []K, settings int)
	// Diff lists, a line each, the operations that would turn the reading into the wanted
	// content; with sweep, removals too. The reading is not adopted.
	Diff(reading any, sweep bool) []string
	// Cost estimates how many messages bring the wanted object to VPP; 0 = VPP holds it, or the
	// object may not be changed yet.
	Cost(k K) int
	// Held yields the agent's objects in VPP, in no order.
	Held() iter.Seq[K]
}

// Apply brings the wanted content to VPP.
type Apply[K Key] interface {
	// Work returns the requests for these objects, preceded by settings that are not in VPP;
	// nil = there are none. For one object it sends at most TurnMessages and leaves the rest to
	// a later batch, where that is safe.
	Work(keys []K) Work[K]
	// Record enters the results of Work. It may clear an error that is not the fault of an
	// object.
	Record(results []Result[K])
}

// Work is a batch for VPP: it is carried out in a goroutine, and returns one result per operation.
type Work[K Key] func(ctx context.Context, vpp link.Caller) []Result[K]

// Batch returns a Work in which do carries out the operations, with a result for each; nil = no
// operations.
func Batch[K Key, O, D any](ops []O, do func(context.Context, link.Caller, []O) []D, result func(*D) Result[K]) Work[K] {
	if len(ops) == 0 {
		return nil
	}
	return func(ctx context.Context, vpp link.Caller) []Result[K] {
		done := do(ctx, vpp, ops)
		results := make([]Result[K], len(done))
		for i := range done {
			results[i] = result(&done[i])
		}
		return results
	}
}

// Drifted lists the keys whose values differ between the belief before and the reading now, in no
// order.
func Drifted[K comparable, V any](before, now map[K]V, same func(a, b V) bool) (keys []K) {
	for k, old := range before {
		if held, found := now[k]; !found || !same(old, held) {
			keys = append(keys, k)
		}
	}
	for k := range now {
		if _, found := before[k]; !found {
			keys = append(keys, k)
		}
	}
	return keys
}

// Result is the outcome of one operation.
type Result[K Key] struct {
	// Text describes the operation in one line.
	Text string
	// Object is the object of the operation, unless Setting is true.
	Object  K
	Setting bool
	// Err is nil when VPP holds the wanted value now.
	Err error
	// Idle says that VPP held the value already and nothing was sent.
	Idle bool
	// Unknown says that VPP has to be read, because it may not hold what is believed.
	Unknown bool
	// Op is the operation, for Apply.Record.
	Op any
}
