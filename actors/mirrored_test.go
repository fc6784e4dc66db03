package actors_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/kube/mirror"
)

// keptUp waits until VPP holds what the mirror says. The node is not ready for that.
func keptUp(w *actorstest.World) {
	w.Helper()
	w.Await("VPP holds what the mirror says", func() bool {
		warned := 0
		for _, p := range w.Readiness.Load().Parts {
			if p.OK && p.Reason == report.FromMirror {
				warned++
			}
		}
		return warned == 3 // the registry and both renderers
	})
	if w.Readiness.Load().Ready {
		w.Error("ready without a source")
	}
}

// unwritten runs something that must not make any actor write to VPP while the mirror serves.
func unwritten(w *actorstest.World, what func()) {
	w.Helper()
	before := w.Writes()
	what()
	for range 3 {
		time.Sleep(250 * time.Millisecond) // longer than every retry
		keptUp(w)
	}
	if n := w.Writes() - before; n != 0 {
		w.Errorf("%d messages changed VPP, want 0", n)
	}
}

// agedMirror is a node whose mirror is older than what its agent did last: db went after it was
// saved, and new came. The source does not answer.
func agedMirror(t *testing.T) (w *actorstest.World, rows []string) {
	t.Helper()
	store, log := mirror.NewStore(t.TempDir(), durable.Disk{}), slog.New(slog.DiscardHandler)
	mirrored := func(source kube.Source) kube.Source {
		return mirror.New(source, store, mirror.Config{Node: probe.Node, Grace: time.Millisecond}, log)
	}
	w = web(t, actorstest.Config{Chain: mirrored})
	w.Stop() // saves
	w.Chain = nil
	w.Start()
	w.Source.Serve("new", "10.96.0.12", "10.1.1.5")
	w.Settled()
	rows = w.Rows()
	if len(rows) != 3 {
		t.Fatalf("rows are %q", rows)
	}
	w.Stop()
	w.Source.Change(func(s *kube.Store) { s.Delete("Service", "default/db") })
	w.Chain = mirrored
	w.Source.Hold("no answer", false)
	return w, rows
}

// TestAMirrorRemovesNothing: neither what went since it was saved nor what came since; the source
// decides, and one row goes.
func TestAMirrorRemovesNothing(t *testing.T) {
	w, rows := agedMirror(t)
	unwritten(w, func() {
		w.Start()
		keptUp(w)
	})
	if now := w.Rows(); !slices.Equal(now, rows) {
		t.Errorf("rows are %q, were %q", now, rows)
	}
	before := w.Writes()
	w.Source.Release()
	w.Settled()
	if now := w.Rows(); len(now) != 2 || slices.ContainsFunc(now, func(row string) bool { return strings.Contains(row, "10.96.0.11") }) {
		t.Errorf("rows are %q, without db, were %q", now, rows)
	}
	if n := w.Writes() - before; n != 1 {
		t.Errorf("%d messages changed VPP, want 1", n)
	}
}

// TestDeathsWhileTheMirrorServesWriteNothing, and the actor that failed knows everything again.
func TestDeathsWhileTheMirrorServesWriteNothing(t *testing.T) {
	w, rows := agedMirror(t)
	w.Start()
	keptUp(w)
	for _, path := range []string{
		address.Registry, address.Renderer("nat44"), address.Renderer("routes"), address.Service("default/web"), address.Interfaces, address.Services, address.Healer, address.Nodes,
	} {
		unwritten(w, func() {
			w.Kill(path)
			keptUp(w)
		})
	}
	if now := w.Rows(); !slices.Equal(now, rows) {
		t.Errorf("rows are %q, were %q", now, rows)
	}
	w.Source.Release()
	w.Settled()
	if now := w.Rows(); len(now) != 2 {
		t.Errorf("rows are %q", now)
	}
}

// TestAMirrorFillsAnEmptyVPP: after the machine was started anew, its services are there before the
// source is.
func TestAMirrorFillsAnEmptyVPP(t *testing.T) {
	w, _ := agedMirror(t)
	if err := w.VPP.Restart(); err != nil {
		t.Fatal(err)
	}
	w.Start()
	keptUp(w)
	if now := w.Rows(); len(now) != 2 {
		t.Errorf("rows are %q, the mirror has two services", now)
	}
	w.Source.Release()
	w.Settled()
	if now := w.Rows(); len(now) != 2 || slices.ContainsFunc(now, func(row string) bool { return strings.Contains(row, "10.96.0.11") }) {
		t.Errorf("rows are %q", now)
	}
}

// TestASourceWithoutServicesAfterAMirror removes all, once it has spoken.
func TestASourceWithoutServicesAfterAMirror(t *testing.T) {
	w, _ := agedMirror(t)
	w.Start()
	keptUp(w)
	w.Source.Change(func(s *kube.Store) {
		s.Delete("Service", "default/web")
		s.Delete("Service", "default/new")
	})
	w.Source.Release()
	w.Settled()
	if now := w.Rows(); len(now) != 0 {
		t.Errorf("ready with rows %q", now)
	}
}
