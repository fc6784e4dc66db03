package render

import (
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
)

// Settler is an adapter whose plan depends on several services together, or on the barrier.
type Settler interface {
	// Settle completes the plan, before work is chosen.
	Settle(phase Phase)
}

// Keeper is an adapter that keeps objects in VPP that nothing claims.
type Keeper[K Key] interface {
	// Wanted reports whether VPP should hold an object of the agent under the key.
	Wanted(k K) bool
}

// Gated is an adapter whose objects have to wait for more than the barrier. Without it, only
// removals wait, and for the barrier. Gate decides about an object that is not in sync.
type Gated[K Key] interface {
	Gate(k K, phase Phase) Gate
}

// Gate says whether an object may be changed now.
type Gate uint8

const (
	// Open: the object may be changed now.
	Open Gate = iota
	// Blocked: the object depends on another one that is not in sync.
	Blocked
	// Closed: a service that has not rendered may want the object. It waits for the barrier.
	Closed
)

// Configured is an adapter with settings that concern all objects.
type Configured interface {
	// Settings reports whether the settings are in VPP, as far as the adapter knows.
	Settings() bool
}

// RoleGiver is an adapter that gives interfaces their roles. Commands about interfaces wait for it.
type RoleGiver interface {
	// RolesRefused returns why VPP refused roles; "" = no refusal.
	RolesRefused() string
}

// Acknowledger is an adapter that knows more about a service than whether it is in sync.
type Acknowledger interface {
	// Acknowledge completes the acknowledgement of a service: rows, approximations, frontends
	// that VPP cannot serve.
	Acknowledge(ack *messages.RenderAck, service string, known bool)
}

// Shower is an adapter whose objects operators see as rows.
type Shower interface {
	// Rows returns the rows of a service: wanted and, if known, held.
	Rows(service string, known bool) (wanted, held []*messages.RowState)
}

// Speaker is an adapter that describes the renderer as a whole.
type Speaker interface {
	// Warning tells operators about a problem of a renderer that is in sync; "" = none.
	Warning() string
	// Summary describes for the journal what VPP holds.
	Summary() string
}

// Barred is an adapter that cannot serve in every VPP.
type Barred interface {
	// Barred returns why most services cannot be served in this VPP, so that the renderer is
	// not ready; "" = they can.
	Barred() string
}

// Sizer is an adapter that knows how much memory of VPP its objects need.
type Sizer[K Key] interface {
	// Bytes returns how many bytes of VPP's main heap the wanted and the held object need; 0 =
	// there is no such object.
	Bytes(k K) (wanted, held int)
}

// Correspondent is an adapter that exchanges messages with other actors.
type Correspondent interface {
	// Asks returns the paths of the actors whose state the adapter needs. The driver asks each
	// at its start.
	Asks() []string
	// Handle takes a message that the Driver does not know.
	Handle(c *runtime.Context, msg any)
	// After is called when a message has been handled, so that the adapter can send its own
	// messages.
	After(c *runtime.Context, known bool)
}

// Bound is an adapter that reads the work queue.
type Bound[K Key] interface {
	// Bind gives the adapter its view of the queue, before any other method is called.
	Bind(progress Progress[K])
}

// Progress is an adapter's view of the work queue.
type Progress[K Key] interface {
	// Dirty reports whether an object may not be as wanted.
	Dirty(k K) bool
	// Refusal returns how often in a row VPP refused an object, and the last error; nil = no
	// refusal.
	Refusal(k K) (times int, err error)
	// Pending counts the objects that are being worked on, without the refused ones.
	Pending() int
	// Refused returns how often in a row VPP refused settings, and the last error; nil = no
	// refusal.
	Refused() (times int, err error)
	// Read requests a read of VPP before the next batch. reason goes into the journal.
	Read(reason string)
	// Memory is how much of VPP's memory is free: while it is critical, objects may not grow.
	// When it is better again, the driver works on the objects that are not as wanted.
	Memory() heap.Level
}

// progress satisfies Progress for the adapter of one driver.
type progress[K Key] struct {
	*queue[K]
	connection *connection
	heap       *heap.Reserve
}

// Refused satisfies Progress.
func (p progress[K]) Refused() (times int, err error) {
	return p.connection.refusals, p.connection.refused
}

// Read satisfies Progress.
func (p progress[K]) Read(reason string) { p.connection.verify = reason }

// Memory satisfies Progress.
func (p progress[K]) Memory() heap.Level { return p.heap.Level() }
