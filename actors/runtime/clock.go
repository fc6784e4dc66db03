package runtime

import (
	"container/heap"
	"time"
)

// Clock is the time of the runtime and the actors. RealClock is for production and for
// testing/synctest bubbles, Sim for simulations.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// AfterFunc calls f once, d from now, on any goroutine. f must only send messages.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of Clock.AfterFunc.
type Timer interface {
	// Stop prevents the call. It reports false when the call has begun, has been made or was
	// stopped before.
	Stop() bool
}

// RealClock is the clock of package time.
func RealClock() Clock { return realClock{} }

type realClock struct{}

// Now satisfies Clock.
func (realClock) Now() time.Time { return time.Now() }

// AfterFunc satisfies Clock.
func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

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

// Stop satisfies Timer.
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

// Len satisfies heap.Interface.
func (h timerHeap) Len() int { return len(h) }

// Swap satisfies heap.Interface.
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Less satisfies heap.Interface.
func (h timerHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].serial < h[j].serial
	}
	return h[i].at.Before(h[j].at)
}

// Push satisfies heap.Interface.
func (h *timerHeap) Push(x any) { *h = append(*h, x.(*simTimer)) }

// Pop satisfies heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
