package chaos

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
)

// speed is the speed of the clock of the actors: a quarantine takes seconds instead of minutes.
const speed = 10

// swift is the clock of a world with threads: a fast real clock that counts its pending timers. It
// has no lock and many counters, because memory that actors share here would order them, and so
// hide races from the race detector.
type swift struct {
	began   time.Time
	pending [64]struct {
		atomic.Int64
		_ [7]int64 // a cache line of its own
	}
}

var _ runtime.Clock = (*swift)(nil)

func newSwift() *swift { return &swift{began: time.Now()} }

// Now satisfies runtime.Clock.
func (s *swift) Now() time.Time {
	return s.began.Add(time.Since(s.began) * speed)
}

// AfterFunc satisfies runtime.Clock.
func (s *swift) AfterFunc(d time.Duration, f func()) runtime.Timer {
	counter := &s.pending[rand.IntN(len(s.pending))].Int64
	counter.Add(1)
	return swiftTimer{time.AfterFunc(d/speed, func() {
		defer counter.Add(-1)
		f()
	}), counter}
}

// left counts the pending timers.
func (s *swift) left() (n int64) {
	for i := range s.pending {
		n += s.pending[i].Load()
	}
	return n
}

type swiftTimer struct {
	timer   *time.Timer
	counter *atomic.Int64
}

// Stop satisfies runtime.Timer.
func (t swiftTimer) Stop() bool {
	stopped := t.timer.Stop()
	if stopped {
		t.counter.Add(-1)
	}
	return stopped
}
