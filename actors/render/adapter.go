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

// Renderer is an adapter with what the Driver has to know of it before it asks.
type Renderer[K Key] struct {
	// Name is the name of the actor, the part of the node's health and the renderer in metrics:
	// "nat44".
	Name string
	// Noun is the word for its objects: "rows".
	Noun string
	// Claims are a *Claims: the wishes of the services. The adapter enters them in Plan, and the
	// Driver does everything else with them.
	Claims wishes[K]
	// Adapter is what differs between renderers. It may have abilities besides: Settler, Gated and
	// the others.
	Adapter Adapter[K]
}

// Adapter is what differs between renderers; everything else is in the Driver. It holds what VPP
// holds as plain data, and its methods are called from the Driver's actor only: they compute and
// never block. What talks to VPP is returned as a function (Reader) or a value (Work) and runs in a
// goroutine; it must not touch the Adapter.
//
// All methods are idempotent: the same input again changes nothing.
type Adapter[K Key] interface {
	Plan[K]
	Actual[K]
	Apply[K]
}

// Plan enters into the claims what VPP should hold. The Driver takes from them of which objects
// something else is wanted now.
type Plan[K Key] interface {
	// Plan takes what a service wants to be served; nil = nothing any more.
	Plan(service string, view *messages.ServiceView)
	// Surroundings takes what planning depends on besides the services.
	Surroundings(s Surroundings)
}

// Actual is what VPP holds, as far as is known.
type Actual[K Key] interface {
	// Forget drops what VPP holds: the connection ended, and with restarted it is another VPP.
	Forget(restarted bool)
	// Reader returns a function that reads what VPP holds. known says whether the present belief is
	// certain.
	Reader(known bool) func(ctx context.Context, vpp link.Caller) (any, error)
	// Adopt takes what was read and, where known, compares it with what was believed. It returns
	// the objects that were not as believed: they were modified outside of the agent. settings
	// counts settings and roles.
	Adopt(reading any, known bool) (drifted []K, settings int)
	// Diff lists, a line each, the operations that would make VPP equal to what is wanted, if it
	// holds what was read; with sweep, removals too. The reading is not adopted.
	Diff(reading any, sweep bool) []string
	// Cost is about how many messages make VPP hold what is wanted under the key; 0 = VPP holds it,
	// or the object may not be changed yet.
	Cost(k K) int
	// Held are the objects of ours in VPP, in no order.
	Held() iter.Seq[K]
}

// Apply makes VPP hold what is wanted.
type Apply[K Key] interface {
	// Work returns what is to be sent to VPP for these objects, preceded by settings that are not
	// in VPP; nil = nothing. For one object it sends at most TurnMessages, the rest in a later
	// batch, where that is safe.
	Work(keys []K) Work[K]
	// Record enters the results of Work. It may clear the error of a result that no object has
	// caused.
	Record(results []Result[K])
}

// Surroundings are what planning depends on besides the services.
type Surroundings struct {
	// Begin is the last list of services, with the node; nil = none yet.
	Begin *messages.Begin
	// Set is the interface set of the connected VPP; nil = not known.
	Set *messages.InterfaceSet
}

// Phase is how far the services have rendered.
type Phase uint8

const (
	// Rendering: there is no list of services yet, or one of them has not rendered.
	Rendering Phase = iota
	// Rendered: all of the list have, but it is that of the local mirror, and there may be others.
	Rendered
	// Passed: every service has rendered, and the barrier is open.
	Passed
)

// Work is a batch for VPP: it is carried out in a goroutine, and returns one result per operation.
type Work[K Key] func(ctx context.Context, vpp link.Caller) []Result[K]

// Batch is the Work of operations that do carries out, with a result for each; nil = there are
// none.
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

// Drifted lists the keys under which VPP holds something else than was believed, in no order.
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

// Result is what became of one operation.
type Result[K Key] struct {
	// Text describes the operation in one line.
	Text string
	// Object is what it was about, unless Setting is true.
	Object  K
	Setting bool
	// Err is nil where VPP holds now what the operation is for.
	Err error
	// Idle says that VPP had it already, and nothing was sent: it is no news.
	Idle bool
	// Unknown says that VPP may hold something else than is believed: it has to be read.
	Unknown bool
	// Op is the operation, for Apply.Record.
	Op any
}

// Replaced are the indexes of the interfaces of a set that are not in the next one, or belong to
// another interface there. What VPP held of them is gone.
func Replaced(before, now *messages.InterfaceSet) (indexes []uint32) {
	names := make(map[uint32]string, len(now.GetInterfaces()))
	for _, i := range now.GetInterfaces() {
		names[i.GetSwIfIndex()] = i.GetName()
	}
	for _, i := range before.GetInterfaces() {
		if names[i.GetSwIfIndex()] != i.GetName() {
			indexes = append(indexes, i.GetSwIfIndex())
		}
	}
	return indexes
}
