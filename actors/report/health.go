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
