package runtime

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// SimOptions configures a simulation.
type SimOptions struct {
	// Seed decides every choice. The same seed gives the same trace.
	Seed uint64
	// MessageCost is the upper bound of the random virtual time that one message takes. With
	// zero, timers fire only when every mailbox is empty, and interleavings inside a cascade
	// are never explored.
	MessageCost time.Duration
	// StepLimit ends a run with ErrStepLimit, for actors that send to each other for ever; 0 =
	// none.
	StepLimit int
	// Trace is called before every step; nil = never.
	Trace func(SimStep)
}

// SimStep is one entry of a trace.
type SimStep struct {
	// At is the virtual time.
	At time.Time
	// Actor is the path of the actor, Message the type of the message it is about to handle, or
	// "go NAME" for a function of Context.Go.
	Actor, Message string
	// System marks a system message: start, stop, restart, failure and end of children.
	System bool
}

// Sim runs a System on one goroutine, repeatably. A step handles one message, the choice of the
// next actor comes from a seed, and time is virtual. Sim is the Scheduler, the Clock and, with
// Start, the Go of the System's Options; see Options.
//
// AfterFunc, Ready, Start and Now may be called from any goroutine, all other methods only on the
// goroutine that runs the simulation. Simulated code must not depend on the order of a map, the
// global random source, goroutines or random identifiers. Otherwise two runs of one seed differ.
type Sim struct {
	// Set by NewSim, read-only.
	options SimOptions
	rand    *rand.Rand

	// Used on the goroutine of the simulation only.
	steps   int
	fired   int
	hash    uint64
	current *coroutine   // runs now; nil = none
	parked  []*coroutine // in the order in which they were parked

	mu     sync.Mutex // guards the following: functions that run have goroutines of their own
	now    time.Time  // virtual
	ready  []unit
	timers timerHeap
	serial int
}

// unit is what the simulation chooses from: a mailbox with work, or a function of Context.Go.
type unit struct {
	box        *Mailbox
	path, name string
	run        func()
}

var (
	_ Scheduler = (*Sim)(nil)
	_ Clock     = (*Sim)(nil)
	_ runner    = (*Sim)(nil)
)

// NewSim makes a simulation.
func NewSim(o SimOptions) *Sim {
	return &Sim{
		options: o, rand: rand.New(rand.NewPCG(o.Seed, 0x5eed)), now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// Options are what a System needs to run in the simulation; the caller adds the rest.
func (s *Sim) Options() Options {
	return Options{Scheduler: s, Clock: s, Go: s.Start, Seed: s.options.Seed}
}

// Rand is the only source of randomness, also for the faults and the workload of a test.
func (s *Sim) Rand() *rand.Rand { return s.rand }

// Steps is how many steps were taken.
func (s *Sim) Steps() int { return s.steps }

// Happened is how many steps were taken and timers fired.
func (s *Sim) Happened() int { return s.steps + s.fired }

// TraceHash is a hash of all steps so far: actors, message types and virtual times, in order.
func (s *Sim) TraceHash() uint64 { return s.hash }

// Now satisfies Clock.
func (s *Sim) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Ready satisfies Scheduler.
func (s *Sim) Ready(m *Mailbox) { s.add(unit{box: m, path: m.Path()}) }

// add makes a unit ready.
func (s *Sim) add(u unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, u)
}

// Run takes steps until the virtual instant. Past that instant it goes on until every mailbox is
// empty.
func (s *Sim) Run(until time.Time) error {
	return s.loop(func() bool { return false }, until)
}

// Skip lets time pass without any step, as when the machine sleeps: every timer of that time is
// late.
func (s *Sim) Skip(d time.Duration) { s.sleepUntil(s.Now().Add(d)) }

// RunFor is Run for a virtual duration.
func (s *Sim) RunFor(d time.Duration) error { return s.Run(s.Now().Add(d)) }

// RunUntil takes steps until done, which it calls between steps, reports true, at most for a
// virtual duration. It returns the last result of done.
func (s *Sim) RunUntil(done func() bool, limit time.Duration) (bool, error) {
	err := s.loop(done, s.Now().Add(limit))
	return done(), err
}

// loop takes steps until done, or until the instant when nothing is left to do before it.
func (s *Sim) loop(done func() bool, until time.Time) error {
	for !done() {
		if limit := s.options.StepLimit; limit > 0 && s.steps >= limit {
			return fmt.Errorf("after %d steps: %w", s.steps, ErrStepLimit)
		}
		s.fireDue()
		s.wake()
		if u, ok := s.choose(); ok {
			s.step(u)
			continue
		}
		// Nothing is ready: jump to the next timer instead of waiting for it.
		next, ok := s.nextTimer()
		if ok && !next.After(until) {
			s.sleepUntil(next)
			continue
		}
		s.sleepUntil(until)
		return nil
	}
	return nil
}

// choose removes a random unit from the ready ones.
func (s *Sim) choose() (u unit, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.ready)
	if n == 0 {
		return u, false
	}
	// The last unit fills the gap: the order of ready is arbitrary, but the same in each run of
	// a seed.
	i := s.rand.IntN(n)
	u = s.ready[i]
	s.ready[i] = s.ready[n-1]
	s.ready[n-1] = unit{}
	s.ready = s.ready[:n-1]
	return u, true
}

// step handles one message or runs one function, and lets time pass.
func (s *Sim) step(u unit) {
	s.steps++
	if u.box == nil {
		s.record(u.path, "go "+u.name, false)
		u.run()
	} else if u.box.step(func(msgType string, system bool) { s.record(u.path, msgType, system) }) {
		s.add(u)
	}
	// A random cost lets timers fire inside a cascade of messages.
	if cost := s.options.MessageCost; cost > 0 {
		s.sleepUntil(s.Now().Add(time.Duration(s.rand.Int64N(int64(cost)))))
	}
}

// record chains the hash, so that it depends on the order of all steps.
func (s *Sim) record(path, message string, system bool) {
	at := s.Now()
	if s.options.Trace != nil {
		s.options.Trace(SimStep{At: at, Actor: path, Message: message, System: system})
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%x|%s|%s|%t|%d", s.hash, path, message, system, at.UnixNano())
	s.hash = h.Sum64()
}

// sleepUntil moves the time forward.
func (s *Sim) sleepUntil(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.now) {
		s.now = at
	}
}

// simTimer is one call of Sim.AfterFunc.
type simTimer struct {
	sim    *Sim
	at     time.Time
	serial int
	fn     func() // nil when stopped or fired
}

// AfterFunc satisfies Clock. Timers of one instant fire in the order in which they were set, on the
// goroutine of the simulation, between two steps.
func (s *Sim) AfterFunc(d time.Duration, fn func()) Timer {
	at := s.Now().Add(max(d, 0))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	t := &simTimer{sim: s, at: at, serial: s.serial, fn: fn}
	heap.Push(&s.timers, t)
	return t
}

func (t *simTimer) Stop() bool { return t.take() != nil }

// take returns the function of a pending timer, once: a timer is either stopped or fired.
func (t *simTimer) take() (fn func()) {
	t.sim.mu.Lock()
	defer t.sim.mu.Unlock()
	fn, t.fn = t.fn, nil
	return fn
}

// fireDue calls every timer that is due.
func (s *Sim) fireDue() {
	now := s.Now()
	for {
		s.mu.Lock()
		if len(s.timers) == 0 || s.timers[0].at.After(now) {
			s.mu.Unlock()
			return
		}
		t := heap.Pop(&s.timers).(*simTimer)
		s.mu.Unlock()
		if fn := t.take(); fn != nil {
			s.fired++
			fn()
		}
	}
}

// nextTimer is the instant of the first timer that was not stopped.
func (s *Sim) nextTimer() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.timers) > 0 {
		if t := s.timers[0]; t.fn != nil {
			return t.at, true
		}
		heap.Pop(&s.timers)
	}
	return time.Time{}, false
}

// timerHeap orders timers by instant, then by age.
type timerHeap []*simTimer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h timerHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].serial < h[j].serial
	}
	return h[i].at.Before(h[j].at)
}

func (h *timerHeap) Push(x any) { *h = append(*h, x.(*simTimer)) }

func (h *timerHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
