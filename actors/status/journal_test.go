package status

import (
	"context"
	"fmt"
	"testing"
	"time"

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
	j := filled(journalFirst + journalRing + 500)
	if got := len(j.first) + len(j.ring); got != journalFirst+journalRing {
		t.Errorf("%d events kept, want %d", got, journalFirst+journalRing)
	}
	if j.first[0].GetSeq() != 1 {
		t.Errorf("the first event is %d, want 1", j.first[0].GetSeq())
	}
	if last := j.page(&EventsQuery{Limit: 1}).Events[0].GetSeq(); last != journalFirst+journalRing+500 {
		t.Errorf("the newest event is %d, want %d", last, journalFirst+journalRing+500)
	}
}

// TestAJournalThatHangsIsBounded: what waits for it is never more than it would keep, and that is the newest.
func TestAJournalThatHangsIsBounded(t *testing.T) {
	inHouse(t, 1, nil, func(h *house) {
		h.settle(time.Minute)
		box, found := h.sys.Mailbox(PathJournal)
		if !found {
			t.Error("no journal")
			return
		}
		box.Hold()
		const n = journalRing + 1000
		for i := range n {
			h.sys.Send(h.sys.PID(PathJournal), &messages.Event{Kind: "flood", Text: fmt.Sprint(i)})
		}
		if s := box.State(); s.HighWater != journalRing || s.Discarded != 1000 {
			t.Errorf("%d waited, %d were given up", s.HighWater, s.Discarded)
		}
		box.Release()
		h.run(5 * time.Second)
		answer, err := h.sys.Ask(context.Background(), PathJournal, &EventsQuery{Limit: 1000, Kind: "flood"})
		if err != nil {
			t.Fatal(err)
		}
		if events := answer.(*EventsPage).Events; len(events) != 1000 || events[0].GetText() != fmt.Sprint(n-1) {
			t.Errorf("%d events, the newest %v", len(events), events[0])
		}
	})
}
