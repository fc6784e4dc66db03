package status

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// filled is a journal that has seen n events; every third one is about "default/web".
func filled(n int) *journal {
	j := &journal{}
	for i := range n {
		e := &messages.Event{Kind: "render"}
		if i%3 == 0 {
			e.Kind, e.Object = "service", "default/web"
		}
		j.keep(e, int64(i))
	}
	return j
}

func TestJournalPages(t *testing.T) {
	j := filled(10)
	var seen []uint64
	for q := (&EventsQuery{Limit: 4}); ; {
		page := j.page(q)
		for _, e := range page.Events {
			seen = append(seen, e.GetSeq())
		}
		if page.Next == 0 {
			break
		}
		q.Before = page.Next
	}
	if len(seen) != 10 || seen[0] != 10 || seen[9] != 1 {
		t.Errorf("paged through %v, want 10 down to 1", seen)
	}
	if got := len(j.page(&EventsQuery{Limit: 100, Object: "default/web"}).Events); got != 4 {
		t.Errorf("%d events about default/web, want 4", got)
	}
	if got := len(j.page(&EventsQuery{Limit: -1}).Events); got != 1 {
		t.Errorf("%d events for a senseless limit, want 1", got)
	}
}

func TestJournalIsBoundedAndKeepsTheBeginning(t *testing.T) {
	j := filled(journalFirst + JournalRing + 500)
	if got := len(j.first) + len(j.ring); got != journalFirst+JournalRing {
		t.Errorf("%d events kept, want %d", got, journalFirst+JournalRing)
	}
	if j.first[0].GetSeq() != 1 {
		t.Errorf("the first event is %d, want 1", j.first[0].GetSeq())
	}
	for q := (&EventsQuery{Limit: 1000}); ; { // without a gap over the end of the ring
		page := j.page(q)
		for i, e := range page.Events[1:] {
			if before := page.Events[i].GetSeq(); e.GetSeq() != before-1 && e.GetSeq() != journalFirst {
				t.Fatalf("%d follows %d", e.GetSeq(), before)
			}
		}
		if q.Before = page.Next; q.Before == 0 {
			break
		}
	}
	if last := j.page(&EventsQuery{Limit: 1}).Events[0].GetSeq(); last != journalFirst+JournalRing+500 {
		t.Errorf("the newest event is %d, want %d", last, journalFirst+JournalRing+500)
	}
}

// TestAJournalThatHangsIsBounded: what waits for it is never more than it would keep, and that is
// the newest.
func TestAJournalThatHangsIsBounded(t *testing.T) {
	sim := runtime.NewSim(runtime.SimOptions{})
	sys := runtime.NewSystem(sim.Options())
	defer func() {
		if err := sys.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	pid, err := sys.SpawnRoot("journal", runtime.Spec{Kind: "journal", New: NewJournal, Limit: JournalRing})
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		if err := sim.RunFor(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	run()
	box, _ := sys.Mailbox("journal")
	box.Hold()
	const n = JournalRing + 1000
	for i := range n {
		sys.Send(pid, &messages.Event{Kind: "flood", Text: fmt.Sprint(i)})
	}
	if s := box.State(); s.HighWater != JournalRing || s.Discarded != 1000 {
		t.Errorf("%d waited, %d were given up", s.HighWater, s.Discarded)
	}
	box.Release()
	run()
	answer, err := sys.Ask(context.Background(), "journal", &EventsQuery{Limit: 1000, Kind: "flood"})
	if err != nil {
		t.Fatal(err)
	}
	if events := answer.(*EventsPage).Events; len(events) != 1000 || events[0].GetText() != fmt.Sprint(n-1) {
		t.Errorf("%d events, the newest %v", len(events), events[0])
	}
}

// TestJournalRecordsFaults: a failure of an actor is an event, and the sequence of a restarted
// journal goes on above the sequence of its predecessor.
func TestJournalRecordsFaults(t *testing.T) {
	s := probe.New(t)
	s.Start(address.Journal, probe.Actors{address.Journal: NewJournal})
	newest := func(q EventsQuery) *messages.Event {
		t.Helper()
		q.Limit = 10
		events := s.Ask(&q).(*EventsPage).Events
		if len(events) == 0 {
			t.Fatalf("no event for %+v", q)
		}
		return events[0]
	}
	s.Tell(&messages.Event{Kind: "service", Object: "a/a", Cause: 7, Text: "changed"})
	s.Tell(&messages.Fault{Actor: address.Registry, Message: "Snapshot", Decision: "restart", Reason: "boom"})
	fault := newest(EventsQuery{Kind: "fault"})
	if fault.GetText() != "failed while handling Snapshot, decision: restart" || fault.GetError() != "boom" || fault.GetActor() != address.Registry || fault.GetTime() == 0 {
		t.Errorf("recorded %v", fault)
	}
	if got := newest(EventsQuery{Cause: 7}); got.GetText() != "changed" {
		t.Errorf("cause 7 is %v", got)
	}
	s.Tell(&messages.Fault{Actor: address.Registry, Decision: "restart", Reason: "killed"})
	if got := newest(EventsQuery{Kind: "fault"}).GetText(); got != "failed while handling no message, decision: restart" {
		t.Errorf("recorded %q", got)
	}
	last := fault.GetSeq()
	s.Kill()
	s.Tell(&messages.Event{Kind: "service"})
	if got := newest(EventsQuery{Kind: "service"}).GetSeq(); got <= last {
		t.Errorf("sequence number %d after %d", got, last)
	}
	if got := s.Ask(&EventsQuery{Limit: 10, After: last}).(*EventsPage).Events; len(got) == 0 {
		t.Error("nothing after the last event of the predecessor")
	}
}
