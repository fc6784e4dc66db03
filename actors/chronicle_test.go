package actors

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// number is a thing of a renderer in tests.
type number int

func (n number) String() string { return fmt.Sprint("thing ", int(n)) }

// told collects what a batch writes down, without an actor.
func told(d *deeds[number]) []*messages.Event {
	var events []*messages.Event
	names := d.sort()
	for _, name := range names {
		events = append(events, d.event(name, d.causes[name], d.groups[name]))
	}
	return events
}

func TestDeedsAreWrittenDownForWhomTheyAreDone(t *testing.T) {
	one, two, three := number(1), number(2), number(3)
	d := &deeds[number]{
		object: "nat44", method: messages.Method_METHOD_UPDATE, noun: "rows", cause: 9,
		owner: func(n number) (string, uint64) {
			return map[number]string{1: "a/a", 2: "b/b", 3: ""}[n], map[number]uint64{1: 11, 2: 22}[n]
		},
		list: []deed[number]{
			{text: "set"},
			{of: &one, text: "add 1"},
			{of: &two, text: "add 2"},
			{of: &one, text: "add more 1", err: errBroken},
			{of: &three, text: "remove 3"},
		},
	}
	events := told(d)
	if len(events) != 3 {
		t.Fatalf("%d records, want one for the settings and one for each service", len(events))
	}
	if e := events[0]; e.GetObject() != "nat44" || e.GetCause() != 9 || !cmp.Equal(e.GetOperations(), []string{"set", "remove 3"}) || e.GetError() != "" {
		t.Errorf("settings and what is nobody's: %v", e)
	}
	if e := events[1]; e.GetObject() != "a/a" || e.GetCause() != 11 || !cmp.Equal(e.GetOperations(), []string{"add 1", "add more 1"}) ||
		!cmp.Equal(e.GetExecuted(), []string{"add 1"}) || e.GetError() != "1 operations not carried out, first: broken" {
		t.Errorf("a service whose change failed in part: %v", e)
	}
	if e := events[2]; e.GetObject() != "b/b" || e.GetCause() != 22 || e.GetExecuted() != nil || e.GetText() != "1 operations on 1 rows" {
		t.Errorf("a service: %v", e)
	}
}

func TestManyDeedsAreSummedUp(t *testing.T) {
	d := &deeds[number]{object: "nat44", noun: "rows", owner: func(n number) (string, uint64) { return n.String(), uint64(n) }}
	for i := range servicesApart + 1 {
		n := number(i)
		d.list = append(d.list, deed[number]{of: &n, text: n.String()})
	}
	if names := d.sort(); len(names) != servicesApart+1 {
		t.Errorf("%d services", len(names))
	}
	e := d.event(d.object, 0, d.list)
	if len(e.GetOperations()) != linesKept+1 || e.GetOperations()[linesKept] != "and 1 more" || e.GetText() != "33 operations on 33 rows" {
		t.Errorf("%v", e)
	}
}

// TestOneIdFromTheInputToTheOperations follows a change through everybody who had to do with it.
func TestOneIdFromTheInputToTheOperations(t *testing.T) {
	w := web(t)
	w.quiet()
	for _, change := range []struct {
		what   string
		do     func(*kube.Store)
		key    string
		texts  []string // beginnings, in their order
		writes int
	}{
		{
			"an endpoint comes", func(s *kube.Store) { s.SetSlice(testSlice("db", "10.1.1.4", "10.1.1.5"), nil) }, "default/db",
			[]string{"changed in the source", "served at 1 frontends with 2 backends", "1 operations on 1 rows", "VPP holds what is wanted"},
			1,
		},
		{
			"a service comes", func(s *kube.Store) {
				s.SetService(testService("new", "10.96.0.12"), nil)
				s.SetSlice(testSlice("new", "10.1.1.4"), nil)
			}, "default/new",
			[]string{"new in the source", "served at 1 frontends with 1 backends", "1 operations on 1 rows", "VPP holds what is wanted"},
			1,
		},
		{
			"a service goes", func(s *kube.Store) { s.DeleteService("default/db") }, "default/db",
			[]string{"gone in the source", "nothing of it is served any more", "1 operations on 1 rows", "VPP holds what is wanted"},
			1,
		},
	} {
		seen := w.events(&EventsQuery{Limit: 1})[0].GetSeq()
		w.change(change.do)
		var chain []*messages.Event
		w.until(change.what, func() bool {
			news := w.events(&EventsQuery{Limit: 1000, After: seen, Object: change.key, Kind: "service"})
			if len(news) == 0 {
				return false
			}
			id := news[0].GetCause()
			chain = w.events(&EventsQuery{Limit: 1000, After: seen, Cause: id})
			return len(chain) >= len(change.texts)
		})
		ops := 0
		for i, e := range chain {
			if i >= len(change.texts) || !strings.HasPrefix(e.GetText(), change.texts[i]) || e.GetObject() != change.key || e.GetMethod() != messages.Method_METHOD_UPDATE {
				t.Errorf("%s: record %d is %v", change.what, i, e)
			}
			ops += len(e.GetOperations())
		}
		if ops != change.writes {
			t.Errorf("%s: %d operations under its id, want %d", change.what, ops, change.writes)
		}
	}
}

// TestAFailedEventHasWhatWasPlannedAndWhatWasDone: VPP takes the first operation of a change and refuses the second.
func TestAFailedEventHasWhatWasPlannedAndWhatWasDone(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.serve("a/a", 5, "10.0.0.1")
		s.forget()
		s.wire.refuseAfter(1, errors.New("no"))
		s.serve("a/a", 7, "10.0.0.1", "10.0.0.2", "10.0.0.3")
		s.run(10 * time.Millisecond)
		for _, e := range all[*messages.Event](s, PathJournal) {
			if e.GetError() == "" || e.GetKind() != "render" {
				continue
			}
			if e.GetCause() != 7 || len(e.GetOperations()) != 2 || len(e.GetExecuted()) != 1 || e.GetObject() != "a/a" {
				t.Errorf("recorded %v", e)
			}
			return
		}
		t.Error("nothing recorded")
	})
}
