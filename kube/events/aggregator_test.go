package events

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// machine drives an aggregator with a server step by step, without Run. It has its own time.
type machine struct {
	*rapid.T
	server *apiServer
	writer *Writer
	now    time.Time
	total  map[string]int // observations of changes and of a first state, by note
}

// newMachine empties a server and uses it again, because making a server takes longer than a test.
func newMachine(t *rapid.T, server *apiServer) *machine {
	server.answer(nil, nil)
	server.expire(t)
	m := &machine{T: t, server: server, now: begin, total: map[string]int{}}
	m.restart()
	return m
}

// restart is the end of an agent and the start of the next one, which takes some time.
func (m *machine) restart() {
	m.now = m.now.Add(time.Second)
	m.writer = New(m.server.Client(), Config{NodeName: "n1", ObjectBurst: 1000, Window: 24 * time.Hour}, slog.New(slog.DiscardHandler))
}

// observe records an occurrence.
func (m *machine) observe(note string) {
	e := event(note)
	m.writer.events.record(&e, m.now)
	m.total[note]++
}

// find records a Standing state, which counts only if it is the first observation.
func (m *machine) find(note string) {
	e := event(note)
	e.Standing = true
	m.writer.events.record(&e, m.now)
	if m.total[note] == 0 {
		m.total[note] = 1
	}
}

// write writes the series that is due, if there is one.
func (m *machine) write() bool {
	s, _ := m.writer.events.next(m.now)
	if s == nil {
		return false
	}
	r := m.writer.send(m.Context(), s)
	m.writer.events.finish(s, &r, m.now)
	return true
}

// flush writes until nothing waits.
func (m *machine) flush() {
	m.server.answer(nil, nil)
	for range 10000 {
		if len(m.writer.events.queue) == 0 {
			return
		}
		if !m.write() {
			m.now = m.now.Add(time.Second)
		}
	}
	m.Fatal("it does not come to an end")
}

// check checks the invariants.
func (m *machine) check() {
	b, waiting := m.writer.events, 0
	for id, s := range b.known {
		if s.id != id {
			m.Fatalf("%v is kept as %v", s.id, id)
		}
		if s.waiting {
			waiting++
		}
	}
	if len(b.queue) != waiting || len(b.known) > b.cfg.MostEvents {
		m.Fatalf("%d of %d wait, the queue has %d", waiting, len(b.known), len(b.queue))
	}
	for note, n := range m.held() {
		if n > m.total[note] {
			m.Fatalf("%s is told %d times, it was observed %d times", note, n, m.total[note])
		}
	}
}

// held returns the number of events by note.
func (m *machine) held() map[string]int {
	held := map[string]int{}
	for _, e := range m.server.events(m) {
		held[e.Note]++
	}
	return held
}

// TestNothingIsToldTwice: every note that was observed is told, and no observation is told twice,
// for any answers of the server and any restarts of the agent in quiet times. An observation after
// a quiet time is told by one more event.
func TestNothingIsToldTwice(t *testing.T) {
	server := newAPIServer()
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, server)
		note := rapid.SampledFrom([]string{"a", "b", "c"})
		draw := func(label string) func(string, string) error {
			return func(string, string) error {
				return rapid.SampledFrom([]error{nil, nil, errTest, apierrors.NewInternalError(errTest)}).Draw(t, label)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"observe": func(t *rapid.T) { m.observe(note.Draw(t, "note")) },
			"find":    func(t *rapid.T) { m.find(note.Draw(t, "note")) },
			"write":   func(*rapid.T) { m.server.answer(draw("before"), draw("after")); m.write() },
			"pass": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
			},
			"restart": func(*rapid.T) { m.flush(); m.restart() },
			"":        func(*rapid.T) { m.check() },
		})
		m.flush()
		before := m.held()
		if len(before) != len(m.total) {
			t.Fatalf("the server holds %v, observed was %v", before, m.total)
		}
		for n := range m.total {
			m.observe(n)
		}
		m.flush()
		for n, now := range m.held() {
			if now != before[n]+1 {
				t.Fatalf("%s is told %d times, and %d times after one more observation", n, before[n], now)
			}
		}
	})
}

func TestStatsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newAggregator(Config{MostEvents: 5, ObjectBurst: 3}.withDefaults())
		now, begun := begin, uint64(0)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "seconds")) * time.Second)
			before := len(b.known)
			e := on(fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "service")), fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "note")))
			id := identityOf(&e)
			known := b.known[id] != nil
			b.record(&e, now)
			if !known && b.known[id] != nil {
				begun++
			}
			if len(b.known) > 5 || len(b.known) < before {
				t.Fatalf("%d events after %d", len(b.known), before)
			}
			if rapid.Bool().Draw(t, "written") {
				if s, _ := b.next(now); s != nil {
					b.finish(s, &result{}, now)
				}
			}
			if s := b.stats; s.Recorded != s.Repeated+s.Limited+s.Overflowed+begun {
				t.Fatalf("%+v and %d new ones", s, begun)
			}
		}
	})
}

func TestQuietEventsAreForgotten(t *testing.T) {
	b := newAggregator(Config{Window: time.Hour}.withDefaults())
	for i := range 10 {
		e := on(fmt.Sprint(i), "boom")
		b.record(&e, begin)
		s, _ := b.next(begin)
		b.finish(s, &result{}, begin)
	}
	if len(b.known) != 10 || len(b.objects) != 10 {
		t.Fatalf("%d events on %d objects", len(b.known), len(b.objects))
	}
	if s, pause := b.next(begin.Add(61 * time.Minute)); s != nil || pause != time.Hour {
		t.Errorf("due: %v, pause %v", s, pause)
	}
	if len(b.known) != 0 || len(b.objects) != 0 {
		t.Errorf("%d events on %d objects are left", len(b.known), len(b.objects))
	}
}

func TestTheQuietestMakesRoom(t *testing.T) {
	b := newAggregator(Config{MostEvents: 2}.withDefaults())
	put := func(name string, second int) {
		e := on(name, "boom")
		b.record(&e, begin.Add(time.Duration(second)*time.Second))
	}
	write := func() {
		now := begin.Add(time.Minute)
		if s, _ := b.next(now); s != nil {
			b.finish(s, &result{}, now)
		}
	}
	put("old", 0)
	write()
	put("young", 1)
	write()
	put("new", 62) // replaces the old one
	put("newer", 63)
	put("newest", 64) // no room: the others wait
	for name, want := range map[string]bool{"old": false, "young": false, "new": true, "newer": true, "newest": false} {
		e := on(name, "boom")
		if got := b.known[identityOf(&e)] != nil; got != want {
			t.Errorf("%s is known: %t", name, got)
		}
	}
	if b.stats.Overflowed != 1 {
		t.Errorf("stats %+v", b.stats)
	}
}

func BenchmarkRecordInAStorm(b *testing.B) {
	w := New(nil, Config{NodeName: "n1"}, slog.New(slog.DiscardHandler))
	var events []Event
	for i := range 10000 {
		events = append(events, on(fmt.Sprint(i), "boom"))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.Record(events[i%len(events)])
	}
}
