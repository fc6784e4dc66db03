package chaos

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/troupe-vpp/troupe/actors/runtime"
)

// sharedInjector is the injector for actors on many goroutines. They only read the rates that the
// driver of the world sets, and every injection has dice of its own, so that the choice of messages
// is not repeatable. Strikes are counted under a lock; they are too rare to hide a race.
type sharedInjector struct {
	now    atomic.Pointer[injector]
	mu     sync.Mutex // guards counts
	counts Counts
}

// show gives the present rates to the actors.
func (s *sharedInjector) show(w *injector) {
	copied := *w
	copied.counts = nil
	s.now.Store(&copied)
}

// local is the injector with the dice of one injection.
func (s *sharedInjector) local() *injector {
	w := *s.now.Load()
	w.rand = rand.New(dice{})
	return &w
}

// dice is the random generator of the thread, which is not shared.
type dice struct{}

// Uint64 satisfies rand.Source.
func (dice) Uint64() uint64 { return rand.Uint64() }

// note adds counts.
func (s *sharedInjector) note(c Counts) {
	if len(c) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range c {
		s.counts[name] += n
	}
}

// fault is the runtime's FaultHook.
func (s *sharedInjector) fault(to *runtime.Mailbox, msg any, phase runtime.Phase) {
	w := s.local()
	defer func() { s.note(w.counts) }()
	w.fault(to, msg, phase)
}
