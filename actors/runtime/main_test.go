package runtime

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/messages"
)

var (
	seeds   = flag.Int("seeds", 100, "how many seeds each simulation campaign runs; CI plays 300")
	oneSeed = flag.Int64("seed", -1, "run only this seed")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// probe is a Behaviour made of functions; nil ones do nothing. Unless it is silent it is ready at
// once.
type probe struct {
	start   func(c *Context)
	receive func(c *Context, msg any)
	stop    func(c *Context)
	silent  bool // does not call Ready
}

func (p *probe) Start(c *Context) {
	if p.start != nil {
		p.start(c)
	}
	if !p.silent {
		c.Ready()
	}
}

func (p *probe) Receive(c *Context, msg any) {
	if p.receive != nil {
		p.receive(c, msg)
	}
}

func (p *probe) Stop(c *Context) {
	if p.stop != nil {
		p.stop(c)
	}
}

// probeSpec makes a Spec that gives every incarnation a copy of p.
func probeSpec(p probe) Spec {
	return Spec{Kind: "probe", New: func() Behaviour { q := p; return &q }}
}

// work is a plain user message, boom one that makes a probe of the tests fail, keyed one that
// coalesces.
type (
	work  struct{ n int }
	boom  struct{}
	keyed struct {
		key string
		n   int
	}
)

func (k *keyed) CoalesceKey() string { return k.key }

// journal collects what happens, from any goroutine.
type journal struct {
	mu     sync.Mutex
	events []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, fmt.Sprintf(format, args...))
}

// take returns what was collected since the last call.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	events := j.events
	j.events = nil
	return events
}

// simulated makes a system in a simulation with its own virtual time. It is shut down, and so
// checked for actors that can not be stopped, at the end of the test.
func simulated(tb testing.TB, seed uint64, with func(*Options)) (*Sim, *System) {
	tb.Helper()
	sim := NewSim(SimOptions{Seed: seed, StepLimit: 2_000_000})
	return sim, simulatedOn(tb, sim, with)
}

func simulatedOn(tb testing.TB, sim *Sim, with func(*Options)) *System {
	tb.Helper()
	o := sim.Options()
	if with != nil {
		with(&o)
	}
	sys := NewSystem(o)
	tb.Cleanup(func() {
		if err := sys.Shutdown(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return sys
}

// dispatched makes a system on protoactor's dispatcher and the real clock, shut down at the end of
// the test.
func dispatched(tb testing.TB, o Options) *System {
	tb.Helper()
	sys := NewSystem(o)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := sys.Shutdown(ctx); err != nil {
			tb.Error(err)
		}
	})
	return sys
}

// root starts a root actor.
func root(tb testing.TB, sys *System, name string, spec Spec) {
	tb.Helper()
	if _, err := sys.SpawnRoot(name, spec); err != nil {
		tb.Fatal(err)
	}
}

// settle lets a simulation work for a virtual second.
func settle(tb testing.TB, sim *Sim) {
	tb.Helper()
	run(tb, sim, time.Second)
}

func run(tb testing.TB, sim *Sim, d time.Duration) {
	tb.Helper()
	if err := sim.RunFor(d); err != nil {
		tb.Fatal(err)
	}
}

// state reads an actor that must exist.
func state(tb testing.TB, sys *System, path string) ActorState {
	tb.Helper()
	s, ok := sys.Actor(path)
	if !ok {
		tb.Fatalf("no actor %s", path)
	}
	return s
}

// mailbox finds a mailbox that must exist.
func mailbox(tb testing.TB, sys *System, path string) *Mailbox {
	tb.Helper()
	box, ok := sys.Mailbox(path)
	if !ok {
		tb.Fatalf("no actor %s", path)
	}
	return box
}

// eventually waits on the real clock, for tests on protoactor's dispatcher.
func eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatal("not reached in time: " + what)
		}
	}
}

func ensure(keys ...string) *messages.Ensure { return &messages.Ensure{Keys: keys} }

func ensureAll(keys ...string) *messages.Ensure {
	return &messages.Ensure{Keys: keys, Complete: true}
}

// campaign runs body for n seeds. A failing seed ends it; run it alone with -args -seed N.
func campaign(t *testing.T, n int, body func(t *testing.T, seed uint64)) {
	t.Helper()
	if testing.Short() { // the race tier: a simulation has one goroutine
		n /= 10
	}
	first, end := uint64(0), uint64(n)
	if *oneSeed >= 0 {
		first, end = uint64(*oneSeed), uint64(*oneSeed)+1
	}
	for seed := first; seed < end; seed++ {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { body(t, seed) }) {
			return
		}
	}
}

// stackFunctions are the top-level functions of this package in a stack trace.
func stackFunctions(stack string) (names []string) {
	for line := range strings.Lines(stack) {
		if _, name, ok := strings.Cut(line, "actors/runtime."); ok {
			names = append(names, name[:strings.IndexAny(name+".", ".(\n")])
		}
	}
	return names
}

// requestFrom is a message that seems to come from an actor.
func requestFrom(sender *Mailbox, msg any) any {
	return &actor.MessageEnvelope{Message: msg, Sender: sender.pid}
}
