package actorstest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Patience is how long a test waits for something that should happen at once. No test asserts on
// time on the real dispatcher.
const Patience = 60 * time.Second

// Now is the time of the troupe.
func (w *World) Now() time.Time {
	if w.Sim != nil {
		return w.Sim.Now()
	}
	return time.Now()
}

// Run lets time pass.
func (w *World) Run(d time.Duration) {
	w.Helper()
	if w.Sim == nil {
		time.Sleep(d)
	} else if err := w.Sim.RunFor(d); err != nil {
		w.Fatal(err)
	}
}

// Until waits until missing returns ""; otherwise it fails the test with the last result.
func (w *World) Until(what string, missing func() string) {
	w.Helper()
	w.Within(Patience, what, missing)
}

// Within is Until with a limit.
func (w *World) Within(limit time.Duration, what string, missing func() string) {
	w.Helper()
	step, longest := time.Millisecond, 10*time.Millisecond
	if w.Sim != nil {
		longest = time.Second
	}
	for deadline := w.Now().Add(limit); ; step = min(2*step, longest) {
		reason := missing()
		if reason == "" {
			return
		}
		if w.GaveUp() != "" || w.Now().After(deadline) {
			w.LogJournal()
			w.Fatalf("%s: not within %s: %s\nreadiness: %+v\nVPP:\n%s", what, limit, reason, w.Readiness.Load(), w.held())
		}
		w.Run(step)
	}
}

// Await is Until for a condition without a reason.
func (w *World) Await(what string, holds func() bool) {
	w.Helper()
	w.Until(what, func() string {
		if holds() {
			return ""
		}
		return "it is not so"
	})
}

// Ready waits until the node is ready.
func (w *World) Ready() {
	w.Helper()
	w.Until("ready", w.unready)
}

func (w *World) unready() string {
	if reason := w.GaveUp(); reason != "" {
		return "the troupe gave up: " + reason
	}
	if report := w.Readiness.Load(); !report.Ready {
		return "not ready: " + report.Reasons()
	}
	return ""
}

// Settled waits until every actor on the way has seen all changes, the node is ready, and every
// service is in sync.
func (w *World) Settled() {
	w.Helper()
	for range 2 { // messages that follow the first barrier are in sync after the second
		w.Barrier()
		w.Until("in sync", w.unsettled)
	}
}

// Barrier asks the actors in the order in which a change travels. Mailboxes are queues, so
// an answer means that the actor has seen all earlier messages.
func (w *World) Barrier() {
	paths := []string{address.Registry}
	for _, key := range slices.Sorted(maps.Keys(w.Source.Services())) {
		paths = append(paths, address.Service(key))
	}
	for _, name := range w.Deps.Renderers() {
		paths = append(paths, address.Renderer(name))
	}
	for _, path := range append(paths, address.Introspect) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		// an actor that does not exist yet has seen nothing; unsettled waits for it
		_, _ = w.System.Inspect(ctx, path)
		cancel()
	}
}

// unsettled says what is still missing; "" = nothing.
func (w *World) unsettled() string {
	if reason := w.unready(); reason != "" {
		return reason
	}
	statuses := w.Statuses()
	shown, want := slices.Sorted(maps.Keys(statuses)), slices.Sorted(maps.Keys(w.Source.Services()))
	if !slices.Equal(shown, want) {
		return fmt.Sprintf("shown are %q, want %q", shown, want)
	}
	for _, key := range shown {
		if reason := w.NotInSync(statuses[key]); reason != "" {
			return key + ": " + reason
		}
	}
	return ""
}

// NotInSync names a renderer in which a service is not in sync. "" = the service is in sync in all
// renderers, or they report that they do not serve a part.
func (w *World) NotInSync(s *messages.ServiceStatus) string {
	if n := len(s.GetRenders()); n != len(w.Deps.Renderers()) {
		return fmt.Sprintf("known to %d renderers", n)
	}
	for _, ack := range s.GetRenders() {
		refused := ack.GetState() == messages.RenderState_RENDER_FAILED && strings.Contains(ack.GetError(), "not served")
		if ack.GetState() != messages.RenderState_RENDER_IN_SYNC && !refused {
			return fmt.Sprintf("%s is %s %s", ack.GetRenderer(), ack.GetState(), ack.GetError())
		}
	}
	return ""
}

// Quiet waits until the node is settled, and stays settled for longer than every first retry.
func (w *World) Quiet() {
	w.Helper()
	for range 3 {
		w.Run(250 * time.Millisecond)
		w.Settled()
	}
}

// Kill makes an actor fail and waits until its successor runs.
func (w *World) Kill(path string) {
	w.Helper()
	var before runtime.ActorState
	w.Await("actor "+path, func() (there bool) {
		before, there = w.System.Actor(path)
		return there
	})
	if err := w.System.Kill(path); err != nil {
		w.Fatalf("kill %s: %v", path, err)
	}
	w.Await("restart of "+path, func() bool {
		now, there := w.System.Actor(path)
		return there && now.Incarnation > before.Incarnation && now.State != runtime.StateBackoff
	})
}

// Settle waits until Wrong finds nothing.
func (w *World) Settle(limit time.Duration) {
	w.Helper()
	w.Within(limit, "as it should be", w.Wrong)
}

// Rests checks for a time that nothing writes to VPP, readiness does not change and Wrong finds
// nothing.
func (w *World) Rests(d time.Duration) {
	w.Helper()
	// An endpoint that has left the slices is removed after VPP was asked for its connections,
	// a second later. The sessions actor may have waited for the connection to VPP meanwhile.
	w.Run(10 * time.Second)
	writes, since := w.Writes(), w.Readiness.Load().Since
	w.Run(d)
	if after := w.Writes(); after != writes {
		w.Errorf("%d writes while nothing changed", after-writes)
	}
	if report := w.Readiness.Load(); !report.Ready || !report.Since.Equal(since) {
		w.Errorf("readiness flapped: %+v", report)
	}
	if wrong := w.Wrong(); wrong != "" {
		w.Errorf("while nothing changed:\n%s", wrong)
	}
	if w.Failed() {
		w.LogJournal()
	}
}
