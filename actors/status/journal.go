package status

import (
	"cmp"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Size of the journal. The first events of a run explain how it came up, so they stay; the rest is
// a ring.
const (
	journalFirst = 256
	// JournalRing is how many later events the journal keeps, and how many wait for it at most.
	JournalRing = 4096
)

// EventsQuery asks the journal for events. The answer is an EventsPage.
type EventsQuery struct {
	// Before selects events with a smaller sequence number; 0 = from the newest. After selects
	// events with a larger one.
	Before, After uint64
	// Limit is the highest number of events to return; 1 to 1000.
	Limit int
	// Kind and Object select; "" = all.
	Kind, Object string
	// Cause selects the consequences of one change or command; 0 = all.
	Cause uint64
}

// EventsPage answers an EventsQuery.
type EventsPage struct {
	// Events are ordered from the newest to the oldest. They are shared and must not be
	// modified.
	Events []*messages.Event
	// Next continues the query as Before; 0 = there are no more.
	Next uint64
}

// journal keeps events. A restarted journal starts empty, with a growing sequence.
type journal struct {
	first []*messages.Event
	ring  []*messages.Event // the latest JournalRing events after first, from the place oldest on
	// place of the oldest event in a full ring
	oldest int
	seq    uint64
}

// NewJournal returns the actor.
func NewJournal() runtime.Behaviour { return &journal{} }

// Start satisfies runtime.Behaviour. The sequence of a restarted journal begins above the numbers
// of its predecessor, because no journal writes more than one event a nanosecond.
func (j *journal) Start(c *runtime.Context) {
	if c.Incarnation() > 1 {
		j.seq = uint64(c.Now().UnixNano())
	}
	c.Ready()
}

func (*journal) Stop(*runtime.Context) {}

func (j *journal) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Event:
		j.add(c, m)
	case *messages.Fault:
		j.add(c, &messages.Event{
			Kind: "fault", Actor: m.GetActor(), Error: m.GetReason(),
			Text: "failed while handling " + cmp.Or(m.GetMessage(), "no message") + ", decision: " + m.GetDecision(),
		})
	case *EventsQuery:
		c.Reply(j.page(m))
	}
}

func (j *journal) add(c *runtime.Context, e *messages.Event) { j.keep(e, c.Now().UnixNano()) }

// keep stamps an event; the sender's value stays as it is.
func (j *journal) keep(e *messages.Event, now int64) {
	j.seq++
	stamped := &messages.Event{
		Seq: j.seq, Time: now, Kind: e.GetKind(), Actor: e.GetActor(), Object: e.GetObject(), Text: e.GetText(),
		Cause: e.GetCause(), Operations: e.GetOperations(), Error: e.GetError(), Method: e.GetMethod(), Executed: e.GetExecuted(),
	}
	if len(j.first) < journalFirst {
		j.first = append(j.first, stamped)
		return
	}
	if len(j.ring) < JournalRing {
		j.ring = append(j.ring, stamped)
		return
	}
	j.ring[j.oldest] = stamped
	j.oldest = (j.oldest + 1) % JournalRing
}

// page collects events from the newest to the oldest.
func (j *journal) page(q *EventsQuery) *EventsPage {
	limit := min(max(q.Limit, 1), 1000)
	page := &EventsPage{}
	for _, part := range [][]*messages.Event{j.ring[:j.oldest], j.ring[j.oldest:], j.first} {
		for i := len(part) - 1; i >= 0; i-- {
			e := part[i]
			switch {
			case e.GetSeq() <= q.After:
				return page
			case !q.selects(e):
				continue
			case len(page.Events) == limit:
				page.Next = page.Events[limit-1].GetSeq()
				return page
			}
			page.Events = append(page.Events, e)
		}
	}
	return page
}

// selects reports whether an event is asked for.
func (q *EventsQuery) selects(e *messages.Event) bool {
	return (q.Before == 0 || e.GetSeq() < q.Before) && (q.Kind == "" || e.GetKind() == q.Kind) &&
		(q.Object == "" || e.GetObject() == q.Object) && (q.Cause == 0 || e.GetCause() == q.Cause)
}
