package mirror

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// simulated is a clock that only the test moves. It calls on the goroutine of the test, as in a
// simulation on one goroutine.
type simulated struct {
	now    time.Time
	timers []*simulatedTimer
}

type simulatedTimer struct {
	clock *simulated
	at    time.Time
	call  func()
}

// after is Config.After.
func (c *simulated) after(d time.Duration, call func()) (stop func() bool) {
	t := &simulatedTimer{c, c.now.Add(d), call}
	c.timers = append(c.timers, t)
	return t.stop
}

func (t *simulatedTimer) stop() bool {
	i := slices.Index(t.clock.timers, t)
	if i >= 0 {
		t.clock.timers = slices.Delete(t.clock.timers, i, i+1)
	}
	return i >= 0
}

// pass makes the calls that are due within a time, in order.
func (c *simulated) pass(d time.Duration) {
	end := c.now.Add(d)
	for len(c.timers) > 0 {
		next := slices.MinFunc(c.timers, func(a, b *simulatedTimer) int { return a.at.Compare(b.at) })
		if next.at.After(end) {
			break
		}
		next.stop()
		c.now = next.at
		next.call()
	}
	c.now = end
}

// inline is a real source that makes all its deliveries within Run.
type inline struct{ play func(kube.Sink) }

// Run satisfies kube.Source.
func (s inline) Run(_ context.Context, sink kube.Sink) error {
	s.play(sink)
	return nil
}

// Refresh satisfies kube.Source.
func (inline) Refresh() {}

// TestOnOneGoroutine: with a clock and a disk of its own, a simulation needs neither goroutines nor
// real time, and nothing happens after the end.
func TestOnOneGoroutine(t *testing.T) {
	clock := &simulated{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	disk, sink := saved(t, service("web", 9)), &receiver{services: map[string]*messages.ServiceInput{}}
	var s *Source
	s = New(inline{func(real kube.Sink) {
		s.Refresh()
		clock.pass(5 * time.Second)
		s.Refresh()
		s.Refresh()
		clock.pass(0)
		if sink.lists != 2 || sink.complete || sink.ok {
			t.Errorf("the mirror serves: %d lists, complete %t, healthy %t", sink.lists, sink.complete, sink.ok)
		}
		real.Snapshot(cluster("a", service("new", 1)))
		clock.pass(2 * time.Second)
		if m, err := NewStore("d", disk).Snapshot(); err != nil || m.GetRevision() != 6 || !time.Unix(0, m.GetSaved()).Equal(clock.now) {
			t.Errorf("saved at %s: %v, %v", clock.now, m, err)
		}
		real.ServiceChanged(service("new", 2))
	}}, NewStore("d", disk), Config{Node: "n1", Origin: "kubernetes", Now: func() time.Time { return clock.now }, After: clock.after}, quiet())
	if err := s.Run(t.Context(), sink); err != nil {
		t.Error(err)
	}
	if m, err := NewStore("d", disk).Snapshot(); err != nil || m.GetRevision() != 7 {
		t.Errorf("the last save: %v, %v", m, err)
	}
	lists := sink.lists
	s.Refresh()
	clock.pass(24 * time.Hour)
	if len(clock.timers) > 0 || sink.lists != lists || len(sink.broken) > 0 {
		t.Errorf("after the end: %d timers, %d more lists, %v", len(clock.timers), sink.lists-lists, sink.broken)
	}
}
