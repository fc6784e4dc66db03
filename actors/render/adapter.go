package render

import (
	"context"
	"fmt"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Key names one object that a renderer keeps in VPP: a NAT44 row, a route.
type Key interface {
	comparable
	fmt.Stringer
}

// Kind describes a renderer.
type Kind struct {
	// Name is the name of the actor, the part of the node's health and the renderer in metrics:
	// "nat44".
	Name string
	// Noun is what its objects are called: "rows".
	Noun string
	// GivesRoles says that it gives interfaces their roles, so that commands about interfaces wait
	// for it.
	GivesRoles bool
	// External says that it carries out external configuration.
	External bool
}

// Adapter is what differs between renderers; everything else is in the Driver. It holds what is
// wanted and what VPP holds as plain data, and its methods are called from the Driver's actor only:
// they compute and never block. What talks to VPP is returned as a function (Reader) or a value
// (Work) and runs in a goroutine; it must not touch the Adapter.
//
// All methods are idempotent: the same input again changes nothing.
type Adapter[K Key] interface {
	// Kind describes the renderer; constant.
	Kind() Kind
	// Compare orders keys, so that a run is repeatable.
	Compare(a, b K) int
	// Bind gives the adapter a view of the Driver's work queue; called once, before any other
	// method.
	Bind(progress Progress[K])

	// Plan takes what a service wants to be served; nil = nothing any more. It returns the objects
	// of which something else is wanted now.
	Plan(service string, view *messages.ServiceView) (changed []K)
	// Surroundings takes what planning depends on besides the services. It returns the objects of
	// which something else is wanted now.
	Surroundings(s Surroundings) (changed []K)
	// Settle works out what depends on several services or on the barrier, before work is chosen.
	// It returns the objects of which something else is wanted now, and the services whose
	// acknowledgement may have changed.
	Settle(phase Phase) (changed []K, services []string)
	// Objects are those that a service wants, ordered.
	Objects(service string) []K
	// Services are those that want an object, the owner first.
	Services(k K) []string
	// Owner is the owner of an object that can have only one: a service or, where it is not one of
	// ours, a description. "" = shared by its services.
	Owner(k K) string
	// Wanted reports whether VPP should hold an object of ours under the key.
	Wanted(k K) bool

	// Forget drops what VPP holds: the connection ended, and with restarted it is another VPP.
	Forget(restarted bool)
	// Reader returns a function that reads what VPP holds. known says whether the present belief is
	// certain.
	Reader(known bool) func(ctx context.Context, vpp link.Caller) (any, error)
	// Adopt takes what was read and compares it with what is wanted and, where known, with what was
	// believed.
	Adopt(reading any, known, passed bool) Comparison[K]
	// Cost is about how many messages make VPP hold what is wanted under the key; 0 = VPP holds it,
	// or the object may not be changed yet.
	Cost(k K) int
	// Leftovers are objects of ours in VPP that no service wants; they go when the barrier has been
	// passed.
	Leftovers() []K
	// Gate says whether an object that is not in sync may be changed now.
	Gate(k K, phase Phase) Gate

	// Settings reports whether the settings that concern all objects are in VPP, as far as is
	// known.
	Settings() bool
	// RolesRefused is why VPP refused roles of interfaces; "" = it did not.
	RolesRefused() string
	// Work returns what is to be sent to VPP for these objects, preceded by settings that are not
	// in VPP; nil = nothing. For one object it sends at most TurnMessages, the rest in a later
	// batch, where that is safe.
	Work(keys []K) Work[K]
	// Record enters the results of Work. It may clear the error of a result that is none of an
	// object, and returns the services whose acknowledgement may have changed.
	Record(results []Result[K]) (services []string)

	// Acknowledge completes the acknowledgement of a service with what only the renderer knows:
	// rows, approximations, parts without means.
	Acknowledge(ack *messages.RenderAck, service string, known bool)
	// Left reports whether VPP holds nothing of a service any more besides its objects.
	Left(service string) bool
	// Warning is what operators should know although the renderer is in sync; "" = nothing. Summary
	// describes what VPP holds, for the journal.
	Warning() string
	Summary() string
	// Diff returns a function that reads VPP and lists what would make it equal to what is wanted;
	// with sweep, removals too.
	Diff(sweep bool) func(ctx context.Context, vpp link.Caller) (operations []string, err error)
	// Rows are the objects of a service as rows for operators: wanted and, where known, held.
	Rows(service string, known bool) (wanted, held []*messages.RowState)

	// Handle takes a message that is not the Driver's, and reports whether it did. changed and
	// services are as those of Settle.
	Handle(c *runtime.Context, msg any) (handled bool, changed []K, services []string)
	// After is called when a message has been handled: the adapter may send what follows from it.
	After(c *runtime.Context, known bool)
}

// Surroundings are what planning depends on besides the services.
type Surroundings struct {
	// Begin is the last list of services, with the node; nil = none yet.
	Begin *messages.Begin
	// Set is the interface set of the connected VPP; nil = not known.
	Set *messages.InterfaceSet
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

// Comparison is what a reading of VPP has brought.
type Comparison[K Key] struct {
	// Changed are objects of which something else is wanted now, because of objects in VPP that are
	// not ours.
	Changed []K
	// Differing are objects that are not as wanted. Without the barrier, those that no service
	// wants are not among them.
	Differing []K
	// Drifted are objects that were not as believed: they were modified outside of the agent.
	// Settings counts settings and roles.
	Drifted  []K
	Settings int
	// Services are those whose acknowledgement may have changed besides.
	Services []string
}

// Work is a batch for VPP.
type Work[K Key] interface {
	// Apply carries it out, in a goroutine, and returns one result per operation.
	Apply(ctx context.Context, vpp link.Caller) []Result[K]
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
	// Op is the operation, for Adapter.Record.
	Op any
}
