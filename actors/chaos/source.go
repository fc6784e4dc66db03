package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
)

// errBroken ends a simulated source or node sync.
var errBroken = errors.New("injected: broken for good")

// source is a simulated kube.Source with the faults of informers. The production mirror and relay
// stand between it and the actors.
type source struct {
	sim     *runtime.Sim
	cluster *cluster
	store   *kube.Store
	listed  func() // called before the delivery of the first list; nil = the call was made

	// Faults and heal set these fields; Run clears broken and twice.
	slow   time.Duration // duration of a list
	blind  bool          // the watch is broken: it misses changes
	broken bool          // the watch must end and list again
	twice  bool          // the list must be delivered once more

	// Only Run and Refresh set these fields.
	seen     uint64    // version of the cluster in the last list
	answered time.Time // the end of the last slow list
	refresh  bool      // the agent has asked for the list
	told     bool      // the broken watch was reported
}

var _ kube.Source = (*source)(nil)

// Run satisfies kube.Source.
func (s *source) Run(ctx context.Context, sink kube.Sink) error {
	over := func() bool { return ctx.Err() != nil }
	s.wait(over)
	if s.blind {
		sink.Health(kube.Health{Reason: "injected: no answer"})
		s.sim.Park(func() bool { return over() || !s.blind })
	}
	if over() {
		return nil
	}
	s.list()
	s.store.Commit()
	s.listed()
	s.listed = nil
	sink.Snapshot(s.store.Snapshot())
	sink.Health(kube.Health{OK: true})
	for {
		s.sim.Park(func() bool {
			return over() || s.refresh || s.broken || s.twice || s.blind != s.told || !s.blind && s.seen != s.cluster.version
		})
		switch {
		case over():
			return nil
		case s.broken:
			s.broken = false
			sink.Health(kube.Health{Reason: "injected: the watch ended"})
			s.wait(over)
			s.told = true
		case s.blind && !s.told:
			s.told = true
			sink.Health(kube.Health{Reason: "injected: the watch is broken"})
		case s.told && !s.blind:
			s.told = false
			s.list() // with the missed changes
			s.store.Commit().Deliver(sink)
			sink.Health(kube.Health{OK: true})
		case s.refresh, s.twice:
			s.refresh, s.twice = false, false
			sink.Snapshot(s.store.Snapshot())
		default:
			s.list()
			s.store.Commit().Deliver(sink)
		}
	}
}

// wait waits for the duration of a list.
func (s *source) wait(over func() bool) {
	if s.slow > 0 {
		s.sim.Sleep(s.slow, over)
		s.answered = s.sim.Now()
	}
}

// list reads the cluster.
func (s *source) list() {
	s.store.Replace(s.cluster.objects(), nil)
	s.seen = s.cluster.version
}

// Refresh satisfies kube.Source.
func (s *source) Refresh() { s.refresh = true }
