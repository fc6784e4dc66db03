package kube

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a source without a goroutine. Each call of step makes the next delivery, as in a
// deterministic simulation.
type script struct {
	t       *testing.T
	ran     bool
	sink    Sink
	asked   int
	ends    error
	blocked bool // Run waits for its context
}

// Run satisfies kube.Source.
func (s *script) Run(ctx context.Context, sink Sink) error {
	if s.ran {
		s.t.Error("the source was run twice")
	}
	s.ran, s.sink = true, sink
	if s.blocked {
		<-ctx.Done()
	}
	return s.ends
}

// Refresh satisfies kube.Source.
func (s *script) Refresh() { s.asked++ }

// answer delivers a Snapshot if one was asked for.
func (s *script) answer() {
	if s.asked > 0 {
		s.asked = 0
		s.sink.Snapshot(&messages.Snapshot{Complete: true})
	}
}

// recorder is a sink that notes the calls.
type recorder struct {
	calls  []string
	health Health // the last one
}

func (r *recorder) ServiceChanged(in *messages.ServiceInput) {
	r.calls = append(r.calls, "service "+in.GetKey())
}
func (r *recorder) NodeChanged(*messages.NodeInput) { r.calls = append(r.calls, "node") }
func (r *recorder) Snapshot(*messages.Snapshot)     { r.calls = append(r.calls, "snapshot") }
func (r *recorder) Health(h Health) {
	r.health = h
	if h.OK {
		h.Reason = "ok"
	}
	r.calls = append(r.calls, "health "+h.Reason)
}

func (r *recorder) want(t *testing.T, calls ...string) {
	t.Helper()
	if !slices.Equal(r.calls, calls) {
		t.Errorf("the listener got %q, want %q", r.calls, calls)
	}
	r.calls = nil
}

// TestListeners: every listener gets health, a Snapshot and then changes, from one run of the
// source on one goroutine.
func TestListeners(t *testing.T) {
	source := &script{t: t}
	r := NewRelay(source, nil, time.Now)
	_ = r.Run(t.Context())
	first, second := &recorder{}, &recorder{}
	leaveFirst := r.Listen(first)
	source.sink.NodeChanged(&messages.NodeInput{})
	first.want(t) // the Snapshot will contain it
	source.answer()
	source.sink.Health(Health{Reason: "blind"})
	source.sink.ServiceChanged(service("a/a"))
	source.sink.NodeChanged(&messages.NodeInput{})
	first.want(t, "snapshot", "health blind", "service a/a", "node")

	leaveSecond := r.Listen(second) // takes over although the first listener has not left
	second.want(t, "health blind")
	leaveFirst()
	source.sink.ServiceChanged(service("a/b"))
	source.answer()
	source.sink.Health(Health{OK: true})
	second.want(t, "snapshot", "health ok")
	r.Refresh()
	source.answer()
	second.want(t, "snapshot")

	leaveSecond()
	leaveSecond()
	source.sink.ServiceChanged(service("a/c"))
	source.sink.Health(Health{Reason: "blind again"})
	source.sink.Snapshot(&messages.Snapshot{})
	first.want(t)
	second.want(t)
	third := &recorder{}
	r.Listen(third)
	third.want(t, "health blind again")
}

// TestEnds: the end of the context is no error; every other end of a source is an error.
func TestEnds(t *testing.T) {
	broken := errors.New("broken")
	for name, ends := range map[string]error{"with an error": broken, "without one": nil} {
		want := ends
		if want == nil {
			want = ErrEnded
		}
		if err := NewRelay(&script{t: t, ends: ends}, nil, time.Now).Run(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- NewRelay(&script{t: t, blocked: true, ends: broken}, nil, time.Now).Run(ctx) }()
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Errorf("after the end of its context: %v", err)
		}
	})
}

// TestConcurrentUse is for the race detector: listeners come and go while the source delivers.
func TestConcurrentUse(t *testing.T) {
	source := &script{t: t}
	r := NewRelay(source, &totals{}, time.Now)
	_ = r.Run(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			source.sink.Snapshot(&messages.Snapshot{Complete: true})
			source.sink.ServiceChanged(service("a/a"))
			source.sink.Health(Health{OK: true})
		}
	}()
	for range 1000 {
		r.Listen(&recorder{})()
	}
	<-done
}

// TestOutageBeginsOnce: an outage that continues with another reason or listener keeps its begin.
// If the source knows the begin, the relay passes it on.
func TestOutageBeginsOnce(t *testing.T) {
	now, saved := time.Unix(1000, 0), time.Unix(7, 0)
	source := &script{t: t}
	r := NewRelay(source, nil, func() time.Time { return now })
	_ = r.Run(t.Context())
	for _, step := range []struct {
		name string
		h    Health
		asOf time.Time
	}{
		{"it works", Health{OK: true, Reason: "a warning"}, time.Time{}},
		{"away", Health{Reason: "refused"}, time.Unix(1002, 0)},
		{"still", Health{Reason: "EOF"}, time.Unix(1002, 0)},
		{"back", Health{OK: true}, time.Time{}},
		{"away again", Health{Reason: "refused"}, time.Unix(1005, 0)},
		{"a mirror", Health{Reason: "from the mirror", AsOf: saved}, saved},
	} {
		now = now.Add(time.Second)
		source.sink.Health(step.h)
		for range 2 {
			listener := &recorder{}
			r.Listen(listener)
			if !listener.health.AsOf.Equal(step.asOf) || listener.health.Reason != step.h.Reason {
				t.Errorf("%s: %+v, want the state as of %s", step.name, listener.health, step.asOf)
			}
		}
	}
}
