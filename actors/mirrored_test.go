package actors

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// mirroredSource says what an earlier run knew until the real source answers, as kube/mirror does.
type mirroredSource struct {
	*source
	kept    *messages.Snapshot
	ask     chan struct{} // holds a request to repeat it
	answers chan struct{} // closed when the real source answers
}

// mirrorOf keeps what a cluster has now as an earlier run.
func mirrorOf(from *source) *mirroredSource {
	kept := proto.CloneOf(from.snapshot())
	kept.Complete, kept.Generation, kept.Node.Generation = false, 0, 0
	for _, in := range kept.GetServices() {
		in.Generation = 0
	}
	return &mirroredSource{source: from, kept: kept, ask: make(chan struct{}, 1), answers: make(chan struct{})}
}

// Run satisfies kube.Source.
func (m *mirroredSource) Run(ctx context.Context, sink kube.Sink) error {
	for {
		select {
		case <-m.answers:
			sink.Health(true, "")
			return m.source.Run(ctx, sink)
		default:
		}
		sink.Snapshot(m.kept)
		sink.Health(false, "from the local mirror")
		select {
		case <-ctx.Done():
			return nil
		case <-m.answers:
		case <-m.ask:
		}
	}
}

// Refresh satisfies kube.Source.
func (m *mirroredSource) Refresh() {
	m.source.Refresh()
	select {
	case m.ask <- struct{}{}:
	default:
	}
}

// keptUp waits until VPP holds what the mirror says. The node is not ready for that.
func (w *world) keptUp() {
	w.t.Helper()
	w.until("VPP holds what the mirror says", func() bool {
		warned := 0
		for _, p := range w.readiness.Load().Parts {
			if p.OK && p.Reason == causeMirror {
				warned++
			}
		}
		return warned == 3 // the registry and both renderers
	})
	if w.readiness.Load().Ready {
		w.t.Error("ready without a source")
	}
}

// unwritten runs something that must not make anybody write to VPP while the mirror serves.
func (w *world) unwritten(what func()) {
	w.t.Helper()
	before := w.vpp.Counters()
	what()
	for range 3 {
		time.Sleep(250 * time.Millisecond) // longer than every retry
		w.keptUp()
	}
	if n := w.vpp.Counters().Mutating() - before.Mutating(); n != 0 {
		w.t.Errorf("%d messages changed VPP, want 0", n)
	}
}

// agedMirror is a node whose mirror is older than what its agent did last: db went after it was saved, and new came.
func agedMirror(t *testing.T) (w *world, m *mirroredSource, rows []string) {
	t.Helper()
	w = web(t)
	m = mirrorOf(w.source)
	w.change(func(s *kube.Store) {
		s.SetService(testService("new", "10.96.0.12"), nil)
		s.SetSlice(testSlice("new", "10.1.1.5"), nil)
	})
	w.until("the new service is in VPP", func() bool { return len(w.rowsIn()) == 3 })
	w.settled()
	rows = w.rowsIn()
	w.stop()
	w.source.commit(func(s *kube.Store) { s.DeleteService("default/db") })
	return w, m, rows
}

// TestAMirrorRemovesNothing: neither what went since it was saved nor what came since; the source decides, and one row goes.
func TestAMirrorRemovesNothing(t *testing.T) {
	w, m, rows := agedMirror(t)
	w.unwritten(func() {
		w.startWith(m)
		w.keptUp()
	})
	if now := w.rowsIn(); !slices.Equal(now, rows) {
		t.Errorf("rows are %q, were %q", now, rows)
	}
	before := w.vpp.Counters()
	close(m.answers)
	w.settled()
	if now := w.rowsIn(); len(now) != 2 || slices.ContainsFunc(now, func(row string) bool { return strings.Contains(row, "10.96.0.11") }) {
		t.Errorf("rows are %q, without db, were %q", now, rows)
	}
	if n := w.vpp.Counters().Mutating() - before.Mutating(); n != 1 {
		t.Errorf("%d messages changed VPP, want 1", n)
	}
}

// TestDeathsWhileTheMirrorServesWriteNothing, and whoever died knows everything again.
func TestDeathsWhileTheMirrorServesWriteNothing(t *testing.T) {
	w, m, rows := agedMirror(t)
	w.startWith(m)
	w.keptUp()
	for _, path := range []string{
		PathRegistry, PathRenderer("nat44"), PathRenderer("routes"), PathWatch, PathService("default/web"), PathInterfaces, PathServices, PathHealer, PathNodes,
	} {
		w.unwritten(func() {
			w.kill(path)
			w.keptUp()
		})
	}
	if now := w.rowsIn(); !slices.Equal(now, rows) {
		t.Errorf("rows are %q, were %q", now, rows)
	}
	close(m.answers)
	w.settled()
	if now := w.rowsIn(); len(now) != 2 {
		t.Errorf("rows are %q", now)
	}
}

// TestAMirrorFillsAnEmptyVPP: after the machine was started anew, its services are there before the source is.
func TestAMirrorFillsAnEmptyVPP(t *testing.T) {
	w, m, _ := agedMirror(t)
	if err := w.vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	w.startWith(m)
	w.keptUp()
	if now := w.rowsIn(); len(now) != 2 {
		t.Errorf("rows are %q, the mirror has two services", now)
	}
	close(m.answers)
	w.settled()
	if now := w.rowsIn(); len(now) != 2 || slices.ContainsFunc(now, func(row string) bool { return strings.Contains(row, "10.96.0.11") }) {
		t.Errorf("rows are %q", now)
	}
}

// TestASourceWithoutServicesAfterAMirror removes all, once it has spoken.
func TestASourceWithoutServicesAfterAMirror(t *testing.T) {
	w, m, _ := agedMirror(t)
	w.startWith(m)
	w.keptUp()
	w.source.commit(func(s *kube.Store) {
		s.DeleteService("default/web")
		s.DeleteService("default/new")
	})
	close(m.answers)
	w.settled()
	if now := w.rowsIn(); len(now) != 0 {
		t.Errorf("ready with rows %q", now)
	}
}
