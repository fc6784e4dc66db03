package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/kube/mirror"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// threaded is a world on the production dispatcher, with the real connection to a simulated VPP
// behind its socket. The world in it belongs to the goroutine of the test, the driver.
type threaded struct {
	*testing.T
	*world

	// These fields do not change; their values are safe for concurrent use.
	seed     uint64
	clock    *swift
	injected *sharedInjector
	sim      *simulator.VPP
	socket   string
	mirror   string // directory of the local mirror
	disk     *brittle

	// Only the driver touches these fields.
	source    *threadedSource // of the present process
	nodes     *threadedNodes
	plan      []event // ordered by time
	life      uint64  // the last known incarnation of VPP
	mortal    int     // active faults that may kill VPP at any time
	empty     runtime.Statistics
	feedEnded chan error // the answer of the feed of the present process

	// Other goroutines use these fields, too.
	fatal atomic.Pointer[string]
	asked atomic.Pointer[runtime.System] // of the present process
}

// event is one step of the driver.
type event struct {
	at time.Time
	do func()
}

// newThreaded builds the node and starts the agent.
func newThreaded(t *testing.T, seed uint64) *threaded {
	t.Helper()
	dir, err := os.MkdirTemp("", "threads") // a short name: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &threaded{T: t, seed: seed, clock: newSwift(), injected: &sharedInjector{counts: Counts{}}}
	w.world = &world{
		now: w.clock.Now, cluster: newCluster(), foreign: map[frontend]bool{}, stolen: map[frontend]int{}, strayed: map[string]int{},
		injector: &injector{rand: rand.New(rand.NewPCG(seed, 3))},
	}
	w.later = func(d time.Duration, do func()) { w.at(w.clock.Now().Add(d), do) }
	w.observed = newObserved(w.cluster)
	// VPP hangs for up to 9 s, and the machine sleeps for up to 4 s
	w.observed.later = func(done func()) { w.later(15*time.Second, done) }
	w.injected.show(w.injector)
	w.sim = simulator.New(simulator.Options{
		AutoRestart: true, RestartDelay: 20 * time.Millisecond,
		OnBoot: func(v *simulator.VPP) {
			if err := connectPods(v, nil); err != nil && v.Alive() {
				t.Errorf("build the topology: %v", err)
			}
		},
	})
	w.socket, w.mirror, w.disk = filepath.Join(dir, "vpp"), filepath.Join(dir, "mirror"), &brittle{FS: durable.Disk{}}
	if err := w.sim.Listen(w.socket); err != nil {
		t.Fatal(err)
	}
	w.vpp = &virtual.Stream{VPP: w.sim} // only to read rows
	w.start(0)
	return w
}

// Error reports a failure of this world. It does not end the goroutine.
func (w *threaded) Error(args ...any) {
	w.Helper()
	w.T.Errorf("seed %d: %s", w.seed, fmt.Sprintln(args...))
}

// Errorf is Error with a format.
func (w *threaded) Errorf(format string, args ...any) {
	w.Helper()
	w.Error(fmt.Sprintf(format, args...))
}

// threadedSource is the source of one process.
type threadedSource struct {
	*actorstest.Source
	away int // active outages
}

// start starts a process of the agent, whose source is silent for a while.
func (w *threaded) start(unseen time.Duration) {
	w.Helper()
	w.source, w.nodes = &threadedSource{Source: actorstest.NewSource(thisNode)}, newThreadedNodes()
	w.deliver()
	if unseen > 0 {
		w.outage(unseen)
	}
	quiet := slog.New(slog.DiscardHandler)
	feed := kube.NewRelay(mirror.New(w.source, mirror.NewStore(w.mirror, w.disk), mirror.Config{
		Node: thisNode, Origin: mirrorOrigin, Grace: 5 * time.Second / speed, Delay: 2 * time.Second / speed,
	}, quiet), nil, time.Now)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	w.endSource, w.feedEnded = cancel, ended
	go func() { ended <- feed.Run(ctx) }()
	hints := make(chan struct{}, 1)
	w.deps = &actors.Deps{
		NodeName: thisNode, Feed: feed, NodeSync: w.nodes, Readiness: &health.Readiness{}, InterfaceEvents: hints,
		NAT44: nat44.Config{Node: thisNode, Pads: true}, Serving: serving(), Log: quiet,
		Link: link.New(link.Config{
			Socket: w.socket, ReplyTimeout: 5 * time.Second / speed, ProbeInterval: time.Second / speed, BackoffMin: 5 * time.Millisecond,
			BackoffMax: time.Second / speed, PollInterval: 10 * time.Millisecond, OnEvent: func() { nudge(hints) },
			// long, because the fault "answer lost" may lose the first answer of a
			// connection
			ReplaceAfter: 20 * time.Second / speed,
		}, quiet),
	}
	w.sys = runtime.NewSystem(runtime.Options{
		Clock: w.clock, Faults: w.injected.fault, Seed: w.seed,
		OnFatal: func(reason string) { w.fatal.Store(&reason) },
	})
	w.empty = w.sys.Statistics()
	tree := actors.Tree(w.deps)
	w.injector.groups = groups(address.RootName, tree)
	w.injected.show(w.injector)
	if _, err := w.sys.SpawnRoot(address.RootName, tree); err != nil {
		w.Error(err)
	}
	w.asked.Store(w.sys)
}

// restart ends the agent and starts another one, as an update does. VPP keeps its state, and the
// cluster changes meanwhile.
func (w *threaded) restart(r *rand.Rand) {
	w.end()
	for range r.IntN(4) {
		w.cluster.mutate(r, false)
	}
	w.start(0)
}

// deliver makes the source deliver the present cluster.
func (w *threaded) deliver() {
	objects := w.cluster.objects()
	w.source.Change(func(s *kube.Store) { s.Replace(objects, nil) })
}

// at adds a step to the plan.
func (w *threaded) at(at time.Time, do func()) {
	i := len(w.plan)
	for i > 0 && w.plan[i-1].at.After(at) {
		i--
	}
	w.plan = slices.Insert(w.plan, i, event{at, do})
}

// until plays the plan up to a time.
func (w *threaded) until(end time.Time) {
	for {
		next := end
		if len(w.plan) > 0 && w.plan[0].at.Before(end) {
			next = w.plan[0].at
		}
		if wait := next.Sub(w.clock.Now()) / speed; wait > 0 {
			time.Sleep(wait)
		}
		w.look()
		if next == end {
			return
		}
		do := w.plan[0].do
		w.plan = w.plan[1:]
		version := w.cluster.version
		do()
		w.injected.show(w.injector)
		if w.cluster.version != version {
			w.deliver()
		}
	}
}

// look notes restarts of VPP: a restarted VPP has no rows.
func (w *threaded) look() {
	w.vpp.Reads = int(w.sim.Counters().Of("nat44_lb_static_mapping_dump"))
	if life := w.sim.Incarnation(); life != w.life {
		w.life = life
		clear(w.foreign)
		clear(w.stolen)
		clear(w.observed.open)
		clear(w.observed.held)
	}
}

// knock tries the connections through the steady service again and again. It ignores violations
// while VPP restarts.
func (w *threaded) knock() {
	broken := len(w.broken)
	w.observed.try(w.world)
	if w.look(); len(w.observed.open) == 0 {
		w.broken = w.broken[:broken]
	}
	w.later(knock, w.knock)
}

// calm ends every fault and drops the rest of the plan.
func (w *threaded) calm() {
	w.plan = nil
	w.injector.calm()
	w.injected.show(w.injector)
	w.source.away = 0
	w.source.Release()
	w.disk.broken.Store(false)
	w.nodes.hold()
	w.sim.ClearFaults()
	w.sim.Resume()
	_ = w.sim.FreezeMappings(false) // VPP may be down
	w.mortal = 0
	for _, a := range w.sys.Snapshot() {
		if box, found := w.sys.Mailbox(a.Path); found {
			box.Release()
		}
	}
	w.deliver()
}

// end ends the agent and reports leaks.
func (w *threaded) end() {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wallPatience)
	defer cancel()
	if err := w.sys.Shutdown(ctx); err != nil {
		w.Errorf("I9: %v", err)
	}
	w.endSource()
	if err := <-w.feedEnded; err != nil {
		w.Errorf("the source ended: %v", err)
	}
	left, deadline := w.sys.Statistics(), time.Now().Add(5*time.Second)
	for left != w.empty && time.Now().Before(deadline) {
		// a request still waits for the answer of an ended actor
		time.Sleep(time.Millisecond)
		left = w.sys.Statistics()
	}
	if left != w.empty {
		w.Errorf("I9: left over: %+v, before the first actor %+v", left, w.empty)
	}
}

// stop ends everything.
func (w *threaded) stop() {
	w.Helper()
	w.end()
	if err := w.sim.Close(); err != nil {
		w.Error(err)
	}
	deadline := time.Now().Add(15 * time.Second / speed)
	for w.clock.left() != 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if n := w.clock.left(); n != 0 {
		w.Errorf("I9: %d timers are left over", n)
	}
}

// amiss lists all differences from the expected state.
func (w *threaded) amiss() []string {
	w.look()
	if reason := w.fatal.Load(); reason != nil {
		w.world.fatal = *reason
	}
	if !w.sim.Alive() {
		return []string{"VPP is down"}
	}
	w.world.nodes = w.nodes.heard()
	return w.wrong()
}
