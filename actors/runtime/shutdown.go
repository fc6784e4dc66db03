package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// namedLeft is how many of the remaining actors and goroutines the error of Shutdown names.
const namedLeft = 10

// simulatedTimeout is the virtual time that Shutdown waits in a simulation, where the context of
// the caller has another clock.
const simulatedTimeout = time.Minute

// runner is a Scheduler that the waiting caller must drive, because it has no goroutine of its own.
type runner interface {
	// RunUntil takes steps until done reports true, at most for a duration, and reports the
	// last result of done.
	RunUntil(done func() bool, limit time.Duration) (bool, error)
}

// Shutdown stops the root actors, which stop their children, and waits until all actors and their
// goroutines have ended. It works in every state of the tree: gates, suspension, back-off and
// quarantine do not delay it. When ctx ends first, it returns an error that names the remaining
// actors and wraps the error of ctx. The stop remains posted, and another call goes on waiting.
func (s *System) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closing
	s.closing = true
	roots := s.roots()
	s.settle()
	s.mu.Unlock()
	// A second call only waits: a stop is posted once.
	if first {
		for _, box := range roots {
			box.stop()
		}
		s.cancel() // also for goroutines of an actor whose handler blocks
	}
	if r, ok := s.options.Scheduler.(runner); ok {
		if done, err := r.RunUntil(s.isEmpty, simulatedTimeout); !done {
			return s.leftOver(cmp.Or(err, context.DeadlineExceeded))
		}
	}
	select {
	case <-s.empty:
		if first {
			s.proto.Shutdown()
		}
		return nil
	case <-ctx.Done():
		return s.leftOver(ctx.Err())
	}
}

// StopRoots stops the root actors and waits for all actors and their goroutines, as Shutdown does,
// and leaves the system ready for another SpawnRoot. When ctx ends first, it returns an error that
// names the remaining actors.
func (s *System) StopRoots(ctx context.Context) error {
	gone := make(chan struct{})
	s.mu.Lock()
	s.leaving = gone
	roots := s.roots()
	s.settle()
	s.mu.Unlock()
	for _, box := range roots {
		box.stop()
	}
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return s.leftOver(ctx.Err())
	}
}

// roots are the mailboxes of the root actors, ordered. Lock must be held.
func (s *System) roots() (roots []*Mailbox) {
	for path, box := range s.boxes {
		if parentPath(path) == "" {
			roots = append(roots, box)
		}
	}
	slices.SortFunc(roots, func(a, b *Mailbox) int { return strings.Compare(a.Path(), b.Path()) })
	return roots
}

// settle ends the wait of Shutdown and StopRoots when nothing is left. Lock must be held.
func (s *System) settle() {
	if len(s.boxes)+len(s.spawning)+len(s.routines) > 0 {
		return
	}
	if s.leaving != nil {
		close(s.leaving)
		s.leaving = nil
	}
	if s.closing && !s.isEmpty() {
		close(s.empty)
	}
}

// isEmpty reports whether a shutdown is complete.
func (s *System) isEmpty() bool {
	select {
	case <-s.empty:
		return true
	default:
		return false
	}
}

// leftOver names the actors and goroutines that have not ended.
func (s *System) leftOver(cause error) error {
	var left []string
	for _, a := range s.Snapshot() {
		if a.Current != "" {
			left = append(left, fmt.Sprintf("%s (in %s for %v)", a.Path, a.Current, a.CurrentFor))
		} else {
			left = append(left, fmt.Sprintf("%s (%s)", a.Path, a.State))
		}
	}
	s.mu.Lock()
	var routines []string
	for r := range s.routines {
		routines = append(routines, fmt.Sprintf("goroutine %s of %s", r.name, r.actor))
	}
	s.mu.Unlock()
	// Sorted, because the order of a map would differ in each run of a simulation.
	slices.Sort(routines)
	left = append(left, routines...)
	more := ""
	if n := len(left) - namedLeft; n > 0 {
		left, more = left[:namedLeft], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("shut down actors: %s%s left: %w", strings.Join(left, ", "), more, cause)
}

// routineStarts makes Shutdown wait for a goroutine.
func (s *System) routineStarts(r *routine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routines[r] = struct{}{}
}

// routineEnds may complete a Shutdown.
func (s *System) routineEnds(r *routine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.routines, r)
	s.settle()
}
