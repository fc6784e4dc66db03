package actors

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// patience is how long a test waits for something that should happen at once. No test asserts on time.
const patience = 30 * time.Second

// testServing are the settings of a cluster with one service network.
func testServing() service.Config {
	return service.Config{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}
}

// source is a cluster in memory, with the semantics of the real sources: first a snapshot, then changes, a snapshot on Refresh.
type source struct {
	mu      sync.Mutex
	store   *kube.Store
	changes chan func(*kube.Store)
	refresh chan struct{}
}

func newSource(node string) *source {
	return &source{store: kube.NewStore(node), changes: make(chan func(*kube.Store), 1024), refresh: make(chan struct{}, 1)}
}

// Run satisfies kube.Source.
func (s *source) Run(ctx context.Context, sink kube.Sink) error {
	s.commit(nil)
	sink.Snapshot(s.snapshot())
	for {
		select {
		case <-ctx.Done():
			return nil
		case change := <-s.changes:
			s.commit(change).Deliver(sink)
		case <-s.refresh:
			s.commit(nil).Deliver(sink)
			sink.Snapshot(s.snapshot())
		}
	}
}

func (s *source) commit(change func(*kube.Store)) kube.Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if change != nil {
		change(s.store)
	}
	return s.store.Commit()
}

func (s *source) snapshot() *messages.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Snapshot()
}

// Refresh satisfies kube.Source.
func (s *source) Refresh() {
	select {
	case s.refresh <- struct{}{}:
	default:
	}
}

// silent is a source that never gets a complete list.
type silent struct{}

// Run satisfies kube.Source.
func (silent) Run(ctx context.Context, sink kube.Sink) error {
	sink.Health(false, "no answer")
	<-ctx.Done()
	return nil
}

// Refresh satisfies kube.Source.
func (silent) Refresh() {}

// world is one node with everything: a cluster in memory, a simulated VPP behind its socket, the troupe on the real dispatcher.
type world struct {
	t           testing.TB
	source      *source
	vpp         *simulator.VPP
	deps        *Deps
	timing      Timing
	observer    Observer
	meter       *link.Meter // what the present agent asks VPP for
	attachments AttachmentStore
	system      *runtime.System
	readiness   *Readiness
	fatal       atomic.Pointer[string]
}

// newWorld builds the node; nothing of the troupe runs before start.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, source: newSource(testNode), timing: Timing{Retry: 200 * time.Millisecond, Rediscover: 500 * time.Millisecond}}
	w.vpp = simulator.New(simulator.Options{AutoRestart: true, OnBoot: testTopology})
	if err := w.vpp.Listen(filepath.Join(t.TempDir(), "api.sock")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.vpp.Close() })
	w.source.commit(func(s *kube.Store) {
		s.SetNode(testNodeObject(), nil)
		for i := 2; i <= 5; i++ {
			s.SetPod(&messages.Pod{Namespace: "default", Name: fmt.Sprint("p", i), Node: testNode, Addresses: []string{fmt.Sprint("10.1.1.", i)}}, nil)
		}
	})
	return w
}

// start runs a troupe; a second start after stop is an agent restart.
func (w *world) start() {
	w.t.Helper()
	w.startWith(w.source)
}

// startWith runs a troupe on another source.
func (w *world) startWith(from kube.Source) {
	w.t.Helper()
	w.readiness = &Readiness{}
	log := slog.New(slog.NewTextHandler(&testLog{w.t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	hints := make(chan struct{}, 1)
	vpp := link.New(link.Config{Socket: w.vpp.Socket(), OnEvent: func() {
		select {
		case hints <- struct{}{}:
		default:
		}
	}}, log)
	w.meter = link.NewMeter(vpp)
	w.deps = &Deps{
		NodeName: testNode, Source: from, Link: w.meter, InterfaceEvents: hints, NAT44: nat44.Config{Node: testNode, Pads: true},
		Readiness: w.readiness, Log: log, Timing: w.timing, Observer: w.observer, Attachments: w.attachments, Serving: testServing(),
	}
	system := runtime.NewSystem(runtime.Options{Logger: log, OnFatal: func(reason string) { w.fatal.Store(&reason) }})
	w.system = system
	w.t.Cleanup(func() { shutdown(w.t, system) })
	if _, err := w.system.SpawnRoot(RootName, Tree(w.deps)); err != nil {
		w.t.Fatal(err)
	}
}

// events asks the journal; the oldest comes first.
func (w *world) events(q *EventsQuery) []*messages.Event {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := w.system.Ask(ctx, PathJournal, q)
	if err != nil {
		w.t.Fatal(err)
	}
	events := answer.(*EventsPage).Events
	slices.Reverse(events)
	return events
}

// stop ends the troupe as the agent does.
func (w *world) stop() {
	w.t.Helper()
	shutdown(w.t, w.system)
}

func shutdown(t testing.TB, system *runtime.System) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := system.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// change changes the cluster.
func (w *world) change(fn func(*kube.Store)) { w.source.changes <- fn }

// until waits for a condition; it fails the test with what there is instead.
func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not within %s\nreadiness: %+v\nVPP:\n%s", what, patience, w.readiness.Load(), w.vpp.State())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// settled waits until the troupe says that VPP holds what it should, and every service agrees.
func (w *world) settled() {
	w.t.Helper()
	w.until("in sync", func() bool { return w.readiness.Load().Ready && w.inSync() })
}

// inSync asks introspection whether all services of the cluster are known and rendered.
func (w *world) inSync() bool {
	want := map[string]uint64{}
	for _, in := range w.source.snapshot().GetServices() {
		if in.GetService() != nil {
			want[in.GetKey()] = in.GetGeneration()
		}
	}
	statuses := w.statuses()
	if len(statuses) != len(want) {
		return false
	}
	for _, s := range statuses {
		if _, ok := want[s.GetKey()]; !ok || len(s.GetRenders()) != len(Renderers()) {
			return false
		}
		for _, r := range s.GetRenders() {
			if r.GetState() != messages.RenderState_RENDER_IN_SYNC {
				return false
			}
		}
	}
	return true
}

// statuses asks introspection for all services.
func (w *world) statuses() []*messages.ServiceStatus {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := w.system.Ask(ctx, PathIntrospect, &StatusQuery{})
	if err != nil {
		return nil
	}
	return answer.(*StatusPage).Services
}

// status is the status of one service; nil when there is none.
func (w *world) status(key string) *messages.ServiceStatus {
	for _, s := range w.statuses() {
		if s.GetKey() == key {
			return s
		}
	}
	return nil
}

// kill makes an actor fail and waits until its successor runs.
func (w *world) kill(path string) {
	w.t.Helper()
	var before runtime.ActorState
	w.until("actor "+path, func() (ok bool) {
		before, ok = w.system.Actor(path)
		return ok
	})
	if err := w.system.Kill(path); err != nil {
		w.t.Fatalf("kill %s: %v", path, err)
	}
	w.until("restart of "+path, func() bool {
		now, ok := w.system.Actor(path)
		return ok && now.Incarnation > before.Incarnation && now.State != runtime.StateBackoff
	})
}

// quiet waits until no actor has anything to do for a while that is longer than every retry.
func (w *world) quiet() {
	w.t.Helper()
	for range 3 {
		time.Sleep(250 * time.Millisecond)
		w.settled()
	}
}

// testLog writes the log of the troupe into the test's.
type testLog struct{ t testing.TB }

func (l *testLog) Write(p []byte) (int, error) {
	defer func() { _ = recover() }() // a line after the end of the test has nowhere to go
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// rowsIn lists the rows of ours in VPP: "vip -> backends".
func (w *world) rowsIn() []string {
	var rows []string
	for _, line := range strings.Split(w.vpp.State(), "\n") {
		if strings.Contains(line, "troupe/") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	slices.Sort(rows)
	return rows
}
