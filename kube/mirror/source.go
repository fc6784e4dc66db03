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
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// Config of a Source. The zero value of a duration means its default.
type Config struct {
	// Node is the name of this node: a state of another one is not served.
	Node string
	// Origin is where the real source reads, as in messages.Mirror.source.
	Origin string
	// Grace is how long the real source may take for its first Snapshot before the mirror is served. Default 5 s.
	Grace time.Duration
	// ConfirmEmpty is how long a healthy source must have no service before the mirror forgets those it has. Default 10 min.
	ConfirmEmpty time.Duration
	// Delay is the time from the first change of several to the save, and the least time between two saves. Default 2 s.
	Delay time.Duration
	// Observer counts; nil = nobody does.
	Observer Observer
}

// Observer is told what metrics count. Its methods must not block.
type Observer interface {
	// MirrorServing is called when the mirror begins and ends to stand in for the source.
	MirrorServing(on bool)
	// MirrorSaved is called when a state has been saved.
	MirrorSaved(at time.Time)
	// MirrorNotSaved is called when a state was not saved, and why: "failed", "empty" or "foreign".
	MirrorNotSaved(why string)
}

// nobody is the Observer that counts nothing.
type nobody struct{}

// MirrorServing satisfies Observer.
func (nobody) MirrorServing(bool) {}

// MirrorSaved satisfies Observer.
func (nobody) MirrorSaved(time.Time) {}

// MirrorNotSaved satisfies Observer.
func (nobody) MirrorNotSaved(string) {}

// phase is where a Source stands; it only grows.
type phase int

const (
	waiting phase = iota // the real source has delivered nothing
	serving              // the mirror stands in for it
	live                 // it has delivered
)

// word is what a source says of itself.
type word struct {
	ok     bool
	reason string
}

// Source is a kube.Source that stands before a real one: it passes on what that one says, saves it, and delivers what was saved when the
// real one does not speak. It is run once.
type Source struct {
	inner   kube.Source
	store   *Store
	cfg     Config
	log     *slog.Logger
	refresh chan struct{} // holds one request
	dirty   chan struct{} // holds a token while something is to be saved

	mu    sync.Mutex // guards everything below, and orders what the sink is told; never held across I/O
	sink  kube.Sink
	phase phase
	kept  *messages.Mirror // what can be served; nil = nothing, or not any more
	word  *word            // of the real source
	told  *word            // to the sink
	state state
	// What is wrong with the mirror itself: found at the start or with a foreign state, and of the last save.
	problem, saving string

	have *identity // what is on the disk, nil = nothing; only New and then the goroutine that saves
}

var _ kube.Source = (*Source)(nil)

// New reads what was saved and returns a source for it. It never fails: a mirror that cannot be used is logged, shows in the health, and is
// done without.
func New(inner kube.Source, store *Store, cfg Config, log *slog.Logger) *Source {
	cfg.Grace = cmp.Or(cfg.Grace, 5*time.Second)
	cfg.ConfirmEmpty = cmp.Or(cfg.ConfirmEmpty, 10*time.Minute)
	cfg.Delay = cmp.Or(cfg.Delay, 2*time.Second)
	if cfg.Observer == nil {
		cfg.Observer = nobody{}
	}
	s := &Source{
		inner: inner, store: store, cfg: cfg, log: log, refresh: make(chan struct{}, 1), dirty: make(chan struct{}, 1),
		state: newState(),
	}
	s.load()
	return s
}

// load takes what an earlier run has saved.
func (s *Source) load() {
	if err := s.store.Clean(); err != nil {
		s.log.Warn("local mirror", "err", err)
	}
	m, err := s.store.Snapshot()
	if errors.Is(err, ErrNone) {
		return
	}
	if err == nil {
		s.have = identify(m)
		if err = s.have.usable(s.cfg.Node); err == nil {
			s.kept = m
			return
		}
	}
	s.problem = "local mirror not used: " + err.Error()
	s.log.Error("start without the local mirror", "err", err)
}

// Earlier returns the objects that an earlier run has read at the same place, nil if there are none. It must be called before Run.
func (s *Source) Earlier() *normalize.Objects {
	if s.kept == nil || s.kept.GetSource() != s.cfg.Origin {
		return nil
	}
	out := &normalize.Objects{Pods: s.kept.GetSnapshot().GetNode().GetPods()}
	for _, in := range s.kept.GetSnapshot().GetServices() {
		if in.GetService() != nil {
			out.Services = append(out.Services, in.GetService())
		}
		out.Slices = append(out.Slices, in.GetSlices()...)
	}
	nodes := s.kept.GetSnapshot().GetNode().GetNodes()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		out.Nodes = append(out.Nodes, nodes[name])
	}
	return out
}

// Run satisfies kube.Source.
func (s *Source) Run(ctx context.Context, sink kube.Sink) error {
	s.locked(func() { s.sink = sink })
	running, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	others.Go(func() { s.stand(running) })
	others.Go(func() { s.keep(running) })
	err := s.inner.Run(ctx, intake{s})
	stop()
	others.Wait()
	return err
}

// Refresh satisfies kube.Source.
func (s *Source) Refresh() {
	s.inner.Refresh()
	select {
	case s.refresh <- struct{}{}:
	default: // one is pending already
	}
}

// stand has the mirror stand in when the real source is late, and repeats what was delivered of it when somebody asks.
func (s *Source) stand(ctx context.Context) {
	grace := time.NewTimer(s.cfg.Grace)
	defer grace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-grace.C:
			s.locked(s.serve)
		case <-s.refresh:
			s.locked(func() {
				if s.phase == serving {
					s.sink.Snapshot(s.kept.GetSnapshot())
				}
			})
		}
	}
}

func (s *Source) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// serve begins to deliver the mirror, unless the real source has spoken or there is none.
func (s *Source) serve() {
	if s.phase != waiting || s.kept == nil {
		return
	}
	s.phase = serving
	s.log.Warn("the source does not answer: serving the local mirror", "saved", savedAt(s.kept.GetSaved()),
		"revision", s.kept.GetRevision(), "cluster", s.kept.GetCluster(), "services", len(s.kept.GetSnapshot().GetServices()))
	s.cfg.Observer.MirrorServing(true)
	s.sink.Snapshot(s.kept.GetSnapshot())
	s.say()
}

// took ends the time before the real source's first Snapshot.
func (s *Source) took() {
	before := s.phase
	s.phase, s.kept = live, nil
	if before == serving {
		s.log.Info("the source answers: it takes over from the local mirror")
		s.cfg.Observer.MirrorServing(false)
	}
	if before != live {
		s.say()
	}
}

// say tells the sink how things are, if that is news.
func (s *Source) say() {
	now := word{ok: true}
	if s.word != nil {
		now = *s.word
	}
	switch {
	case s.phase == serving:
		now.ok = false
		now.reason = "from the local mirror of " + savedAt(s.kept.GetSaved()) + ": " + cmp.Or(now.reason, "the source has not delivered anything yet")
	case s.phase == waiting && s.word == nil:
		return // nobody expects a word
	}
	now.reason = join(now.reason, s.problem, s.saving)
	if s.told == nil && now == (word{ok: true}) && s.word == nil || s.told != nil && *s.told == now {
		return
	}
	s.told = &now
	s.sink.Health(now.ok, now.reason)
}

// join joins what there is to say.
func join(texts ...string) string {
	var said []string
	for _, text := range texts {
		if text != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, "; ")
}

// savedAt is the time of a save for people.
func savedAt(nanos int64) string { return time.Unix(0, nanos).UTC().Format(time.RFC3339) }

// intake is the sink of the real source.
type intake struct{ *Source }

var _ kube.Sink = intake{}

// ServiceChanged satisfies kube.Sink.
func (s intake) ServiceChanged(in *messages.ServiceInput) {
	s.locked(func() {
		s.state.service(in)
		s.changed()
		s.sink.ServiceChanged(in)
	})
}

// NodeChanged satisfies kube.Sink.
func (s intake) NodeChanged(in *messages.NodeInput) {
	s.locked(func() {
		s.state.node = in
		s.changed()
		s.sink.NodeChanged(in)
	})
}

// Snapshot satisfies kube.Sink.
func (s intake) Snapshot(m *messages.Snapshot) {
	s.locked(func() {
		if m.GetComplete() && s.state.everything(m) {
			s.changed()
		}
		s.sink.Snapshot(m)
		if m.GetComplete() {
			s.took()
		}
	})
}

// Health satisfies kube.Sink.
func (s intake) Health(ok bool, reason string) {
	s.locked(func() {
		s.word = &word{ok, reason}
		s.state.healthy(ok)
		if !ok {
			s.serve()
		}
		s.say()
	})
}
