package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// errBroken is the end of a source or a node sync that can not go on.
var errBroken = errors.New("injected: broken for good")

// source is the simulated kube.Source on a cluster, with the faults that informers have.
type source struct {
	sim     *runtime.Sim
	cluster *cluster
	store   *kube.Store
	seen    uint64        // version of the cluster that was delivered
	slow    time.Duration // that a list takes

	answered time.Time // when the last slow list was there

	refresh bool
	blind   bool // the watch is broken: changes are missed
	told    bool // whether that was said
	broken  bool // Run is to end with an error
	twice   bool // everything is to be delivered once more
	asked   int  // how often everything was asked for
}

var (
	_ kube.Source   = (*source)(nil)
	_ kube.Digester = (*source)(nil)
)

// Run satisfies kube.Source; each run counts its generations from 1.
func (s *source) Run(ctx context.Context, sink kube.Sink) error {
	over := func() bool { return ctx.Err() != nil }
	if s.slow > 0 {
		s.sim.Sleep(s.slow, over)
		s.answered = s.sim.Now()
	}
	s.sim.Park(func() bool { return over() || !s.blind })
	if over() {
		return nil
	}
	s.store, s.told = kube.NewStore(thisNode), false
	s.list()
	s.store.Commit()
	sink.Snapshot(s.store.Snapshot())
	sink.Health(true, "")
	for {
		s.sim.Park(func() bool {
			return over() || s.refresh || s.broken || s.twice || s.blind != s.told || !s.blind && s.seen != s.cluster.version
		})
		switch {
		case over():
			return nil
		case s.broken:
			s.broken = false
			return errBroken
		case s.blind != s.told:
			if s.told = s.blind; s.blind {
				sink.Health(false, "injected: the watch is broken")
				continue
			}
			s.list() // what was missed
			s.store.Commit().Deliver(sink)
			sink.Health(true, "")
		case s.refresh, s.twice:
			s.refresh, s.twice = false, false
			sink.Snapshot(s.store.Snapshot())
		default:
			s.list()
			s.store.Commit().Deliver(sink)
		}
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

// Digest satisfies kube.Digester.
func (s *source) Digest() *messages.Digest {
	if s.store == nil {
		return &messages.Digest{}
	}
	return s.store.Digest()
}
