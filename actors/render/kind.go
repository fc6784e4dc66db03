package render

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// Key names one object that a renderer keeps in VPP: a NAT44 row, a route.
type Key interface {
	comparable
	fmt.Stringer
}

// Renderer is a kind of object with its names and claims.
type Renderer[K Key] struct {
	// Name is the name of the actor, the part of the node's health and the renderer in metrics:
	// "nat44".
	Name string
	// Noun is the word for its objects: "rows".
	Noun string
	// Roles says that it gives interfaces their roles. Commands about interfaces wait for it.
	Roles bool
	// Claims are a *Claims: the wishes of the services. Only the kind changes them; the Driver
	// reads them.
	Claims wishes[K]
	// Kind is the kind of object.
	Kind Kind[K]
	// Progress is what the Driver tells the kind of the work queue and of VPP; nil = nothing.
	Progress *Progress[K]
	// Mail are messages of its own; nil = none.
	Mail Mail
	// Remove removes all of the agent's objects from VPP when the agent has ended. It reads VPP
	// itself, and blocks; nil = nothing is removed.
	Remove func(ctx context.Context, vpp link.Caller, r *Removal) error
}

// Kind is one kind of object. Everything else is in the Driver. It keeps the content of VPP as
// plain data. Only the Driver's actor calls its methods, which compute and never block. Reader and
// Work return functions. A goroutine calls these; they talk to VPP and must not touch the Kind.
//
// All methods are idempotent: the same input again changes nothing.
type Kind[K Key] interface {
	// Plan takes the view of a service; nil = the service is gone.
	Plan(service string, view *messages.ServiceView)
	// Settle takes the other input of planning, and completes the plan before work is chosen.
	Settle(s Surroundings)
	// Reader returns a function that reads the content of VPP. known says whether the present
	// belief is certain.
	Reader(known bool) func(ctx context.Context, vpp link.Caller) (any, error)
	// Adopt takes a reading and, with known, compares it with the belief before. It returns the
	// objects that differ: they were modified outside of the agent. settings counts the
	// settings and roles that differ.
	Adopt(reading any, known bool) (drifted []K, settings int)
	// Forget drops the content of VPP, because the connection has ended. restarted says that
	// VPP is another process.
	Forget(restarted bool)
	// Next compares an object with what VPP holds.
	Next(k K) Step
	// Work returns the requests for these steps, preceded by settings that are not in VPP; nil =
	// there are none.
	Work(steps []Chosen[K]) Work[K]
	// Record enters the results of Work. It may clear an error that is not the fault of an
	// object.
	Record(results []Result[K])
	Shower[K]
}

// Shower is what operators and services see of a Kind.
type Shower[K Key] interface {
	// State is the state as a whole.
	State() State[K]
	// Acknowledge adds to the acknowledgement of a service: its rows, approximations, and the
	// frontends without support in VPP.
	Acknowledge(ack *messages.RenderAck, service string, known bool)
	// Rows returns the rows of a service: wanted and, if known, held.
	Rows(service string, known bool) (wanted, held []*messages.RowState)
	// Diff lists the operations that would turn the reading into the wanted content; with
	// sweep, removals too. The reading is not adopted.
	Diff(reading any, sweep bool) []Difference
}

// Difference is one operation that VPP lacks.
type Difference struct {
	// Object is the frontend "ip:port/PROTO" or the network of a route; "" = a setting or a list.
	Object string
	// Missing says that VPP holds no row at the frontend, which the operation creates.
	Missing bool
	// Text is the operation in one line.
	Text string
}

// Step is what brings one object from what VPP holds to what is wanted. The zero value: VPP should
// hold no object of the agent, and does not.
type Step struct {
	// Wanted says that VPP should hold an object of the agent.
	Wanted bool
	// Cost is about how many messages the operations need; 0 = VPP holds the object as it is
	// wanted, or it may not be changed yet.
	Cost int
	// Ops are the operations. For one object they need at most TurnMessages; a later Step has
	// the rest, where that is safe.
	Ops []Op
	// Gate says whether the object may be changed now.
	Gate Gate
	// Bytes and Held are the bytes of VPP's main heap that the object needs, as it is wanted
	// and as VPP holds it; 0 = there is no such object.
	Bytes, Held int
}

// Op is an operation of a package below vpp/.
type Op = batch.Op

// Boxed are the operations for a Step.
func Boxed[O Op](ops []O) []Op {
	all := make([]Op, len(ops))
	for i, op := range ops {
		all[i] = op
	}
	return all
}

// Unboxed appends the operations of a Step, which all are of one type.
func Unboxed[O Op](to []O, ops []Op) []O {
	for _, op := range ops {
		if typed, is := op.(O); is {
			to = append(to, typed)
		}
	}
	return to
}

// Chosen is a step that is carried out.
type Chosen[K Key] struct {
	// Key is the object.
	Key K
	Step
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

// State is the state of a renderer as a whole.
type State[K Key] struct {
	// Settings says that the settings that concern all objects are in VPP, as far as is known.
	Settings bool
	// RolesRefused is why VPP refused roles; "" = no refusal.
	RolesRefused string
	// Barred is why most services cannot be served in this VPP, so that the renderer is not
	// ready; "" = they can.
	Barred string
	// Warning tells operators about a problem of a renderer that is in sync; "" = none.
	Warning string
	// Held yields the agent's objects in VPP, in no order.
	Held iter.Seq[K]
	// Summary describes for the journal what VPP holds, if that is known.
	Summary func() string
	// Draining counts endpoints without new connections.
	Draining int
}

// Mail are the messages of a Kind that is in touch with other actors.
type Mail interface {
	// Asks returns the paths of the actors whose state it needs. The driver asks each at its
	// start.
	Asks() []string
	// Handle takes a message that the Driver does not know.
	Handle(c *runtime.Context, msg any)
	// After is called when a message has been handled, to send messages.
	After(c *runtime.Context, known bool)
}

// Work is a batch for VPP: it is carried out in a goroutine, and returns one result per operation.
type Work[K Key] func(ctx context.Context, vpp link.Caller) []Result[K]

// Batch returns a Work in which do carries out the operations; nil = there are none. about returns
// the object of an operation, or that it is about settings.
func Batch[K Key, O Op](ops []O, do func(context.Context, link.Caller, []O) []batch.Result[O], about func(O) (object K, setting bool)) Work[K] {
	if len(ops) == 0 {
		return nil
	}
	return func(ctx context.Context, vpp link.Caller) []Result[K] {
		done := do(ctx, vpp, ops)
		results := make([]Result[K], len(done))
		for i, d := range done {
			results[i] = Result[K]{Op: d.Op, Err: d.Err, Unknown: d.Unknown, Idle: d.Messages == 0 && d.Err == nil && !d.Unknown}
			results[i].Object, results[i].Setting = about(d.Op)
		}
		return results
	}
}

// Result is the outcome of one operation.
type Result[K Key] struct {
	// Op is the operation.
	Op Op
	// Object is the object of the operation, unless Setting is true.
	Object  K
	Setting bool
	// Err is nil when VPP holds the wanted value now.
	Err error
	// Idle says that VPP held the value already and nothing was sent.
	Idle bool
	// Unknown says that VPP has to be read, because it may not hold what is believed.
	Unknown bool
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

// Progress is a kind's view of the work queue and of VPP. The Driver fills in the empty one.
type Progress[K Key] struct {
	queue      *queue[K]
	connection *connection
	heap       *heap.Reserve
}

// progress fills in Progress.
func (r Renderer[K]) progress(q *queue[K], n *connection, h *heap.Reserve) {
	if r.Progress != nil {
		*r.Progress = Progress[K]{q, n, h}
	}
}

// Dirty reports whether an object may not be as wanted.
func (p *Progress[K]) Dirty(k K) bool { return p.queue.Dirty(k) }

// Refusal returns how often in a row VPP refused an object, and the last error; nil = no refusal.
func (p *Progress[K]) Refusal(k K) (times int, err error) { return p.queue.Refusal(k) }

// Pending counts the objects that are being worked on, without the refused ones.
func (p *Progress[K]) Pending() int { return p.queue.Pending() }

// Refused returns how often in a row VPP refused settings, and the last error; nil = no refusal.
func (p *Progress[K]) Refused() (times int, err error) {
	return p.connection.refusals, p.connection.refused
}

// Read requests a read of VPP before the next batch. reason goes into the journal.
func (p *Progress[K]) Read(reason string) { p.connection.verify = reason }

// Memory is how much of VPP's memory is free: while it is critical, objects may not grow. When it
// is better again, the driver works on the objects that are not as wanted.
func (p *Progress[K]) Memory() heap.Level { return p.heap.Level() }

// Removal is one removal of everything that the agent has put into VPP. One goroutine runs it and
// owns it.
type Removal struct {
	// DryRun only reads VPP.
	DryRun bool
	// Owned are the objects without a mark that the agent has made. Others stay.
	Owned *owned.Record
	// Said are the operations, in their order. Kept are the objects that stay in VPP because
	// nothing marks their owner.
	Said, Kept []string
}

// unknown is why an object stays.
const unknown = "kept, owner unknown: "

// Keep records that an object stays, because nothing says that the agent has made it.
func (r *Removal) Keep(object string) { r.Kept = append(r.Kept, unknown+object) }

// CarryOut records operations and applies them, unless the removal is a dry run.
func CarryOut[O Op](ctx context.Context, vpp link.Caller, r *Removal, ops []O, apply func(context.Context, link.Caller, []O) []batch.Result[O]) (err error) {
	for _, op := range ops {
		r.Said = append(r.Said, op.Describe())
	}
	if r.DryRun || len(ops) == 0 {
		return nil
	}
	for _, done := range apply(ctx, vpp, ops) {
		err = errors.Join(err, done.Err)
	}
	return err
}
