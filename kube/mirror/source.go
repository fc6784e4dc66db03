package mirror

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// Config of a Source. The zero value of a duration means its default.
type Config struct {
	// Node is the name of this node. The state of another node is not served.
	Node string
	// Origin is the place that the real source reads, as in messages.Mirror.source.
	Origin string
	// Grace is the time that the real source has for its first Snapshot before the mirror is
	// served. Default 5 s.
	Grace time.Duration
	// ConfirmEmpty is the time for which a healthy source must have no service before the
	// mirror forgets its services. Default 10 min.
	ConfirmEmpty time.Duration
	// Delay is the time from the first of several changes to the save, and the least time
	// between two saves. Default 2 s.
	Delay time.Duration
	// Observer feeds the metrics; nil = none.
	Observer Observer
	// Now is the clock, and After calls f once after d, unless stop prevents it; f blocks only
	// on the disk. A simulation on one goroutine has its own. Default: those of package time.
	Now   func() time.Time
	After func(d time.Duration, f func()) (stop func() bool)
}

// Observer counts for the metrics. Its methods must not block.
type Observer interface {
	// MirrorServing is called when the mirror starts and stops serving its state in place of
	// the source.
	MirrorServing(on bool)
	// MirrorSaved is called when a state has been saved.
	MirrorSaved(at time.Time)
	// MirrorNotSaved is called with the reason when a state was not saved: "failed", "empty" or
	// "foreign".
	MirrorNotSaved(why string)
}

// uncounted is the Observer of a Source without one.
type uncounted struct{}

func (uncounted) MirrorServing(bool) {}

func (uncounted) MirrorSaved(time.Time) {}

func (uncounted) MirrorNotSaved(string) {}

// phase is the phase of a Source; it only grows.
type phase int

const (
	waiting phase = iota // the real source has delivered nothing
	serving              // the mirror serves in its place
	live                 // the real source has delivered
)

// Source is a kube.Source in front of a real one: it passes deliveries on, saves their state, and
// serves the saved state while the real source delivers nothing.
type Source struct {
	// Any goroutine may use these fields; New sets them.
	inner kube.Source
	store *Store
	cfg   Config
	log   *slog.Logger
	asked atomic.Bool // a Refresh waits for its answer

	// mu guards the fields of this group and orders the calls of the sink; it is never held
	// across I/O.
	mu    sync.Mutex
	sink  kube.Sink // nil before and after Run
	phase phase
	// State of an earlier run that can be served; nil = none, or the real source has delivered.
	earlier  *messages.Mirror
	source   *kube.Health // last report of the real source; nil = none yet
	reported *kube.Health // last report to the sink
	state    state
	// Problems of the mirror itself: problem with the files of earlier runs, saveProblem with
	// the last save.
	problem, saveProblem string
	saves                saves

	// saving lets one save run at a time and guards disk; it is held across I/O.
	saving sync.Mutex
	disk   *identity // identity of the state on the disk; nil = none
}

var _ kube.Source = (*Source)(nil)

// New reads the saved state and returns a Source. It never fails: a mirror that cannot be used is
// logged and reported through Health, and the source works without it.
func New(inner kube.Source, store *Store, cfg Config, log *slog.Logger) *Source {
	cfg.Grace = cmp.Or(cfg.Grace, 5*time.Second)
	cfg.ConfirmEmpty = cmp.Or(cfg.ConfirmEmpty, 10*time.Minute)
	cfg.Delay = cmp.Or(cfg.Delay, 2*time.Second)
	if cfg.Observer == nil {
		cfg.Observer = uncounted{}
	}
	if cfg.Now == nil {
		cfg.Now, cfg.After = time.Now, func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	s := &Source{inner: inner, store: store, cfg: cfg, log: log, state: newState(), saves: saves{pause: cfg.Delay}}
	s.load()
	return s
}

// load reads the state of an earlier run.
func (s *Source) load() {
	if err := s.store.Clean(); err != nil {
		s.log.Warn("unfinished saves not removed", "err", err)
	}
	m, err := s.store.Snapshot()
	if errors.Is(err, ErrNone) {
		return
	}
	if err == nil {
		s.disk = identify(m)
		if err = s.disk.usable(s.cfg.Node); err == nil {
			s.earlier = m
			return
		}
	}
	s.problem = "local mirror not used: " + err.Error()
	s.log.Error("start without the local mirror", "err", err)
}

// Earlier returns the objects that an earlier run has read from the same place, nil if there are
// none. It must be called before Run.
func (s *Source) Earlier() *normalize.Objects {
	if s.earlier == nil || s.earlier.GetSource() != s.cfg.Origin {
		return nil
	}
	out := &normalize.Objects{Pods: s.earlier.GetSnapshot().GetNode().GetPods()}
	for _, in := range s.earlier.GetSnapshot().GetServices() {
		if in.GetService() != nil {
			out.Services = append(out.Services, in.GetService())
		}
		out.Slices = append(out.Slices, in.GetSlices()...)
	}
	nodes := s.earlier.GetSnapshot().GetNode().GetNodes()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		out.Nodes = append(out.Nodes, nodes[name])
	}
	return out
}

// Run satisfies kube.Source. Timers that fire after it find no sink and do nothing.
func (s *Source) Run(ctx context.Context, sink kube.Sink) error {
	s.locked(func() {
		s.sink = sink
		s.saveIn(freshen)
	})
	stop := s.cfg.After(s.cfg.Grace, func() { s.locked(s.serve) })
	err := s.inner.Run(ctx, intake{s})
	stop()
	s.lastSave()
	s.locked(func() { s.sink = nil })
	return err
}

// Refresh satisfies kube.Source. While the mirror serves, Refresh repeats its Snapshot, because a
// restarted watch has none.
func (s *Source) Refresh() {
	s.inner.Refresh()
	// A burst of requests gets one Snapshot. The clock calls later, because Refresh must not
	// call the sink.
	if s.asked.Swap(true) {
		return
	}
	s.cfg.After(0, func() {
		s.asked.Store(false)
		s.locked(func() {
			if s.phase == serving && s.sink != nil {
				s.sink.Snapshot(s.earlier.GetSnapshot())
			}
		})
	})
}

// locked runs a function under the lock.
func (s *Source) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// serve starts to deliver the saved state, unless there is none or the real source has delivered.
func (s *Source) serve() {
	if s.phase != waiting || s.earlier == nil || s.sink == nil {
		return
	}
	s.phase = serving
	s.log.Warn("the source does not answer: serving the local mirror", "saved", savedAt(s.earlier.GetSaved()),
		"revision", s.earlier.GetRevision(), "cluster", s.earlier.GetCluster(), "services", len(s.earlier.GetSnapshot().GetServices()))
	s.cfg.Observer.MirrorServing(true)
	s.sink.Snapshot(s.earlier.GetSnapshot())
	s.report()
}

// goLive notes that the real source has delivered a complete Snapshot.
func (s *Source) goLive() {
	before := s.phase
	s.phase, s.earlier = live, nil
	if before == serving {
		s.log.Info("the source answers: it takes over from the local mirror")
		s.cfg.Observer.MirrorServing(false)
	}
	if before != live {
		s.report()
	}
}

// report passes the health of the source and of the mirror to the sink, if it has changed.
func (s *Source) report() {
	now := kube.Health{OK: true}
	if s.source != nil {
		now = *s.source
	}
	switch {
	case s.phase == serving:
		now.OK, now.AsOf = false, time.Unix(0, s.earlier.GetSaved())
		now.Reason = "from the local mirror of " + savedAt(s.earlier.GetSaved()) + ": " + cmp.Or(now.Reason, "the source has not delivered anything yet")
	case s.phase == waiting && s.source == nil:
		return // a source that starts is neither healthy nor unhealthy
	}
	// A problem of the mirror is a warning: the source itself works.
	now.Reason = join(now.Reason, s.problem, s.saveProblem)
	if s.reported == nil && now == (kube.Health{OK: true}) && s.source == nil || s.reported != nil && *s.reported == now {
		return
	}
	s.reported = &now
	s.sink.Health(now)
}

// join joins the texts that are not empty.
func join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// savedAt returns the time of a save as text for people.
func savedAt(nanos int64) string { return time.Unix(0, nanos).UTC().Format(time.RFC3339) }

// intake is the sink of the real source.
type intake struct{ *Source }

var _ kube.Sink = intake{}

func (s intake) ServiceChanged(in *messages.ServiceInput) {
	s.locked(func() {
		s.state.service(in, s.cfg.Now())
		s.changed()
		s.sink.ServiceChanged(in)
	})
}

func (s intake) NodeChanged(in *messages.NodeInput) {
	s.locked(func() {
		s.state.node = in
		s.changed()
		s.sink.NodeChanged(in)
	})
}

func (s intake) Snapshot(m *messages.Snapshot) {
	s.locked(func() {
		if m.GetComplete() && s.state.replace(m, s.cfg.Now()) {
			s.changed()
		}
		// The sink gets the Snapshot before the health. Otherwise the agent would become
		// ready with the state of an earlier run.
		s.sink.Snapshot(m)
		if m.GetComplete() {
			s.goLive()
		}
	})
}

func (s intake) Health(h kube.Health) {
	s.locked(func() {
		s.source = &h
		s.state.healthy(h.OK, s.cfg.Now())
		if !h.OK {
			s.serve()
		}
		s.report()
	})
}
