// Package report has the reports of actors: events for the journal, health for the healer, numbers
// for metrics.
//
// Every function sends messages or calls an Observer and never blocks. A Health value belongs to
// the actor that embeds it.
package report

import (
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Heartbeat is the interval at which every part repeats its health. A part that misses three of
// them counts as silent (SilentAfter).
const Heartbeat = 2 * time.Second

// SilentAfter is how long a part may say nothing until it counts as not ready.
const SilentAfter = 3 * Heartbeat

// Beat is the message with which a part reminds itself of its heartbeat.
type Beat struct{}

// Ask is the message with which a restarted healer asks a part for its last report, so that
// readiness does not wait for the next heartbeat.
type Ask struct{}

// Forwarding is the message with which the healer tells whether this node may attract packets: all
// parts that put rows into VPP are well.
type Forwarding struct {
	OK bool
	// Before says that it was once well in this run of the healer.
	Before bool
}

// Emptied is the message with which a follower tells the healer that VPP is another one, without
// rows: the healer judges anew whether this node may attract packets.
type Emptied struct{}

// Health reports the health of one part to the healer. The actor of the part embeds it, calls Start
// in its Start, and Beat for every Beat message.
type Health struct {
	// Part is the name of the part, for example "nat44".
	Part string
	// Also is the path of another actor that gets the reports; "" = none.
	Also string
	// Interfaces is the generation of the interface set in VPP; 0 = none.
	Interfaces uint64
	// RefusedSet is the generation of the interface set whose roles VPP refused, and RefusedWhy
	// the reason; 0 = none.
	RefusedSet uint64
	RefusedWhy string
	// Reach of what is wrong; without meaning while the part is well.
	Reach messages.Reach
	// Partial says that only single objects are wrong; without meaning while the part is well.
	Partial bool
	// Lost says that VPP forwards nothing; without meaning while the part is well.
	Lost bool
	// Waiting is since when, in Unix nanoseconds, the oldest object waits for an answer of VPP;
	// 0 = none waits.
	Waiting int64
	// AsOf is when, in Unix nanoseconds, the state of the part was last current; 0 = it is
	// current.
	AsOf int64
	// Last is the last report; nil = none yet. It is immutable.
	Last *messages.Health
}

// Start begins the heartbeat.
func (*Health) Start(c *runtime.Context) { c.After(Heartbeat, &Beat{}) }

// Beat repeats the last report, so that a restarted healer learns it, and schedules the next
// heartbeat.
func (h *Health) Beat(c *runtime.Context) {
	c.After(Heartbeat, &Beat{})
	h.Repeat(c)
}

// Report sends the health of the part; with ok, a reason is a warning. epoch is the incarnation of
// a renderer, 0 for other parts.
func (h *Health) Report(c *runtime.Context, ok bool, reason string, epoch uint64) {
	h.Last = &messages.Health{
		Part: h.Part, Ok: ok, Reason: reason, Epoch: epoch, Interfaces: h.Interfaces, RolesRefused: h.RefusedWhy, RefusedSet: h.RefusedSet,
		Reach: h.Reach, Waiting: h.Waiting, Partial: h.Partial && !ok, Lost: h.Lost && !ok, AsOf: h.AsOf,
	}
	h.Repeat(c)
}

// Current reports whether Last is equal to such a report, so that it need not be sent.
func (h *Health) Current(ok bool, reason string) bool {
	l := h.Last
	return l != nil && l.GetOk() == ok && l.GetReason() == reason && l.GetInterfaces() == h.Interfaces && l.GetRefusedSet() == h.RefusedSet &&
		l.GetWaiting() == h.Waiting && l.GetReach() == h.Reach && l.GetPartial() == (h.Partial && !ok) && l.GetLost() == (h.Lost && !ok) && l.GetAsOf() == h.AsOf
}

// Repeat sends the last report again.
func (h *Health) Repeat(c *runtime.Context) {
	if h.Last == nil {
		return
	}
	c.Send(c.PID(address.Healer), h.Last)
	if h.Also != "" {
		c.Send(c.PID(h.Also), h.Last)
	}
}

// FromMirror is the warning of parts that work with the local mirror, because the source has not
// delivered.
const FromMirror = "the services are those of the local mirror"

// Event sends an event to the journal, with the path of the sender.
func Event(c *runtime.Context, e *messages.Event) {
	e.Actor = c.Path()
	c.Send(c.PID(address.Journal), e)
}

// Observer counts for metrics. Its methods are called from actors and must not block.
type Observer interface {
	// Synced is called when a renderer has brought changes into VPP. took is the time from the
	// first to the last message to VPP. full says that the pass followed a read of VPP.
	Synced(renderer string, took time.Duration, full bool)
	// Programmed is called once per change of an EndpointSlice that reached VPP.
	Programmed(p Programming)
	// Operations is called with the outcome of operations on VPP.
	Operations(renderer string, succeeded, failed, unknown int)
	// Healed is called when steps of the escalation were taken for a part. step is "key",
	// "object", "downstream", "full", "subtree" or "exit", n is how often.
	Healed(part, step string, n int)
	// Drifted is called with the number of objects that were modified outside of the agent.
	Drifted(renderer string, n int)
	// Memory is called with the size and the free part of VPP's main heap, in bytes; total 0 =
	// unknown. waiting is the number of objects for which VPP has no memory.
	Memory(renderer string, total, free, waiting int)
	// InputErrors is called with the number of problems in the input of all services, whenever
	// it changes.
	InputErrors(n int)
}

// Programming is a change of an EndpointSlice that has reached VPP.
type Programming struct {
	// Latency is the time since Kubernetes stamped the change. The clocks of two machines may
	// make it negative.
	Latency time.Duration
	// IPv6 is the family of the slice.
	IPv6 bool
	// Cause is the ID of the change in the journal.
	Cause uint64
}

// None is the Observer that counts nothing.
type None struct{}

// Synced satisfies Observer.
func (None) Synced(string, time.Duration, bool) {}

// Programmed satisfies Observer.
func (None) Programmed(Programming) {}

// Operations satisfies Observer.
func (None) Operations(string, int, int, int) {}

// Healed satisfies Observer.
func (None) Healed(string, string, int) {}

// Drifted satisfies Observer.
func (None) Drifted(string, int) {}

// InputErrors satisfies Observer.
func (None) InputErrors(int) {}

// Memory satisfies Observer.
func (None) Memory(string, int, int, int) {}

// Step is one step of the escalation. Each step costs more than the one before and is taken when
// that did not help.
type Step uint8

const (
	// StepKey: what VPP refused is tried again, 1 s x 2^n apart with jitter.
	StepKey Step = iota
	// StepObject: VPP is read because it refuses one object again and again; the belief about
	// the object may be wrong.
	StepObject
	// StepDownstream: VPP is read and compared as a whole.
	StepDownstream
	// StepFull: the desired state is read anew as well, and a new incarnation of the part
	// computes everything again.
	StepFull
	// StepSubtree: the part is restarted together with its siblings, the connection to VPP
	// included.
	StepSubtree
	// StepExit: the process ends and Kubernetes starts it again; VPP goes on forwarding.
	StepExit
	// NoStep: no step is due.
	NoStep
)

// String is the word for metrics, the API and the journal.
func (s Step) String() string {
	return [...]string{"key", "object", "downstream", "full", "subtree", "exit", "none"}[s]
}

// Healed tells the healer that a part has taken one of the first two steps by itself.
type Healed struct {
	// Part is the name of the part.
	Part string
	// Step is StepKey or StepObject.
	Step Step
	// N is how often.
	N int
}

// TookStep sends Healed to the healer, unless n is 0.
func TookStep(c *runtime.Context, part string, s Step, n int) {
	if n > 0 {
		c.Send(c.PID(address.Healer), &Healed{part, s, n})
	}
}
