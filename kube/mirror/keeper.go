package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

const (
	// freshen is how often a state that does not change is saved again, so that its time tells how long ago it was seen.
	freshen = time.Hour
	// share is how much longer than a save the pause after it is: saving must not become all that a disk does.
	share = 20
	// retry is how many delays later a save that failed is tried again.
	retry = 5
)

// state is what the real source has delivered. It has no lock of its own.
type state struct {
	services map[string]*messages.ServiceInput
	node     *messages.NodeInput
	complete bool // there was a Snapshot
	unsaved  bool
	ill      bool      // the source says that it does not see what happens
	empty    time.Time // since when there is no service and the source is not ill; zero = there are, or it is
}

func newState() state { return state{services: map[string]*messages.ServiceInput{}} }

// service takes one value.
func (s *state) service(in *messages.ServiceInput) {
	if in.GetService() == nil && len(in.GetSlices()) == 0 {
		delete(s.services, in.GetKey())
	} else {
		s.services[in.GetKey()] = in
	}
	s.weigh()
}

// everything takes a complete list and reports whether it says anything new. Values that did not change are shared between lists.
func (s *state) everything(m *messages.Snapshot) bool {
	before, node, first := s.services, s.node, !s.complete
	s.services, s.node, s.complete = make(map[string]*messages.ServiceInput, len(m.GetServices())), m.GetNode(), true
	for _, in := range m.GetServices() {
		s.services[in.GetKey()] = in
	}
	s.weigh()
	return first || node != s.node || !maps.Equal(before, s.services)
}

// healthy takes what the source says of itself.
func (s *state) healthy(ok bool) {
	s.ill = !ok
	s.weigh()
}

// weigh notes since when there is nothing.
func (s *state) weigh() {
	switch {
	case !s.complete || s.ill || len(s.services) > 0:
		s.empty = time.Time{}
	case s.empty.IsZero():
		s.empty = time.Now()
	}
}

// collect returns everything as one value.
func (s *state) collect() *messages.Snapshot {
	out := &messages.Snapshot{Node: s.node, Complete: true, Services: make([]*messages.ServiceInput, 0, len(s.services))}
	for _, key := range slices.Sorted(maps.Keys(s.services)) {
		out.Services = append(out.Services, s.services[key])
	}
	return out
}

// changed has the state saved soon. The lock must be held.
func (s *Source) changed() {
	s.state.unsaved = true
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// keep saves until ctx ends, and then once more.
func (s *Source) keep(ctx context.Context) {
	timer := time.NewTimer(freshen)
	defer timer.Stop()
	at, pause := time.Now().Add(freshen), s.cfg.Delay
	for {
		select {
		case <-ctx.Done():
			s.save(true)
			return
		case <-s.dirty:
			if soon := time.Now().Add(pause); soon.Before(at) {
				at = soon
				timer.Reset(pause)
			}
		case <-timer.C:
			began := time.Now()
			next := s.save(true)
			pause = max(s.cfg.Delay, share*time.Since(began))
			at = time.Now().Add(next)
			timer.Reset(next)
		}
	}
}

// save saves the state if there is anything new; with anyway, also one that is confirmed by a healthy source. It returns when to try again.
func (s *Source) save(anyway bool) time.Duration {
	var m *messages.Mirror
	var empty time.Time
	s.locked(func() {
		if !s.state.complete || !s.state.unsaved && (!anyway || s.state.ill) {
			return
		}
		m = &messages.Mirror{Node: s.cfg.Node, Source: s.cfg.Origin, Snapshot: s.state.collect()}
		empty, s.state.unsaved = s.state.empty, false
	})
	if m == nil {
		return freshen
	}
	m.Cluster = clusterOf(m.GetSnapshot())
	now := identify(m)
	again, why, err := s.refuse(now, empty)
	if err == nil {
		m.Revision, m.Saved = s.have.next(), time.Now().UnixNano()
		now.revision, now.saved = m.GetRevision(), m.GetSaved()
		if err = s.store.SaveSnapshot(m); err == nil {
			s.have = now
			s.cfg.Observer.MirrorSaved(time.Unix(0, m.GetSaved()))
			s.outcome("")
			return freshen
		}
		again, why = retry*s.cfg.Delay, "failed"
	}
	s.cfg.Observer.MirrorNotSaved(why)
	s.locked(func() { s.state.unsaved = true })
	s.outcome(err.Error())
	return again
}

// next is the revision after this one.
func (id *identity) next() uint64 {
	if id == nil {
		return 1
	}
	return id.revision + 1
}

// refuse returns why a state must not replace the one that is on the disk, and when that may have changed; nil = it may.
func (s *Source) refuse(now *identity, empty time.Time) (again time.Duration, why string, err error) {
	have := s.have
	if have != nil && !have.same(now) {
		s.cfg.Observer.MirrorNotSaved("foreign")
		path, err := s.store.PutForeignAside()
		if err != nil {
			return retry * s.cfg.Delay, "failed", err
		}
		text := fmt.Sprintf("the local mirror of %s was of another cluster (%s, this one is %s); it is kept as %s",
			savedAt(have.saved), called(have), called(now), path)
		s.log.Error(text)
		s.locked(func() {
			s.problem = text
			s.say()
		})
		s.have = nil
		return 0, "", nil
	}
	if have == nil || have.services == 0 || now.services > 0 {
		return 0, "", nil
	}
	left := s.cfg.ConfirmEmpty
	if !empty.IsZero() {
		left -= time.Since(empty)
	}
	if left <= 0 {
		return 0, "", nil
	}
	return left, "empty", fmt.Errorf("the source has no service at all, so none is served: the copy of %s on disk keeps its %d until that has lasted %s",
		savedAt(have.saved), have.services, s.cfg.ConfirmEmpty)
}

// called names a cluster for people.
func called(id *identity) string {
	if id.cluster != "" {
		return id.cluster
	}
	return id.source
}

// outcome tells how the last save went, once.
func (s *Source) outcome(problem string) {
	s.locked(func() {
		if problem == s.saving {
			return
		}
		s.saving = problem
		if problem != "" {
			s.log.Warn("local mirror not saved", "err", problem)
		}
		s.say()
	})
}
