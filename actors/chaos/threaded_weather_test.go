package chaos

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
)

// sky shows the weather to actors on many goroutines. They only read what the driver of the world has put there, and every strike has dice of its
// own: which message is struck is not repeatable here. What strikes is counted, which is rare enough to hide no race.
type sky struct {
	now    atomic.Pointer[weather]
	mu     sync.Mutex // guards counts
	counts Counts
}

// spoken are the kinds of messages that actors exchange, as a simulation has heard them.
var spoken = sync.OnceValues(func() (kinds map[string]bool, err error) {
	_, err = alone(func(w *world, _ *rand.Rand) { kinds = w.weather.heard }, 0)
	return kinds, err
})

// show makes the present weather that of the actors.
func (s *sky) show(w *weather) {
	copied := *w
	copied.counts = nil
	s.now.Store(&copied)
}

// local is the weather with the dice of one strike.
func (s *sky) local() *weather {
	w := *s.now.Load()
	w.rand, w.heard = rand.New(dice{}), nil
	return &w
}

// dice is the generator of the thread: nobody shares it.
type dice struct{}

// Uint64 satisfies rand.Source.
func (dice) Uint64() uint64 { return rand.Uint64() }

// note adds what has struck.
func (s *sky) note(c Counts) {
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
func (s *sky) fault(to *runtime.Mailbox, msg any, phase runtime.Phase) {
	w := s.local()
	defer func() { s.note(w.counts) }()
	w.fault(to, msg, phase)
}

// network is the runtime's NetworkHook.
func (s *sky) network(to *runtime.Mailbox, msg any) []time.Duration {
	w := s.local()
	defer func() { s.note(w.counts) }()
	return w.network(to, msg)
}
