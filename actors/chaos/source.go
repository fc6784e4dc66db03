package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
)

// errBroken is the end of a node sync that cannot go on.
var errBroken = errors.New("injected: broken for good")

// source is the simulated kube.Source on a cluster, with the faults that informers have. Before the
// troupe stand the mirror and the relay of production.
type source struct {
	sim     *runtime.Sim
	cluster *cluster
	store   *kube.Store
	seen    uint64        // version of the cluster that was delivered
	slow    time.Duration // that a list takes

	answered time.Time // when the last slow list was there

	refresh bool
	blind   bool // the watch is broken: changes are missed
	told    bool // whether that was reported
	broken  bool // the watch ends, and everything is listed again
	twice   bool // everything is to be delivered once more
	asked   int  // how often everything was asked for

	listed func() // is called before the first list is delivered; nil = it was
}

var _ kube.Source = (*source)(nil)

// newSource returns the source of one process.
func newSource(sim *runtime.Sim, k *cluster, listed func()) *source {
	return &source{sim: sim, cluster: k, store: kube.NewStore(thisNode), listed: listed}
}

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
			s.list() // with the changes that the watch missed
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

// wait is the time that a list takes.
func (s *source) wait(over func() bool) {
	if s.slow > 0 {
		s.sim.Sleep(s.slow, over)
		s.answered = s.sim.Now()
	}
}

func (s *source) list() {
	s.store.Replace(s.cluster.objects(), nil)
	s.seen = s.cluster.version
}

// Refresh satisfies kube.Source.
func (s *source) Refresh() {
	s.refresh = true
	s.asked++
}
