package mirror

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

const (
	// freshen is the interval at which an unchanged state is saved again, so that its time tells
	// when the source last confirmed it.
	freshen = time.Hour
	// share is the length of the pause after a save, in multiples of the duration of the save: on a
	// slow disk saves must leave time for other programs.
	share = 20
	// retry is the time after which a failed save is tried again, in multiples of Delay.
	retry = 5
)

// state is the state that the real source has delivered. It has no lock and no clock of its own.
type state struct {
	services map[string]*messages.ServiceInput
	node     *messages.NodeInput
	complete bool      // a Snapshot was delivered
	blind    bool      // the source reports that it does not see changes
	empty    time.Time // since this time the source, not blind, has no service; zero = it has some
}

// newState returns the state of a source that has delivered nothing.
func newState() state { return state{services: map[string]*messages.ServiceInput{}} }

// service records the new value of one service.
func (s *state) service(in *messages.ServiceInput, now time.Time) {
	if in.GetService() == nil && len(in.GetSlices()) == 0 {
		delete(s.services, in.GetKey())
	} else {
		s.services[in.GetKey()] = in
	}
	s.noteEmpty(now)
}

// replace records a complete list and reports whether it differs from the state. Unchanged values
// are shared between lists.
func (s *state) replace(m *messages.Snapshot, now time.Time) bool {
	before, node, first := s.services, s.node, !s.complete
	s.services, s.node, s.complete = make(map[string]*messages.ServiceInput, len(m.GetServices())), m.GetNode(), true
	for _, in := range m.GetServices() {
		s.services[in.GetKey()] = in
	}
	s.noteEmpty(now)
	return first || node != s.node || !maps.Equal(before, s.services)
}

// healthy records a health report of the source.
func (s *state) healthy(ok bool, now time.Time) {
	s.blind = !ok
	s.noteEmpty(now)
}

// noteEmpty keeps the time since which there is no service.
func (s *state) noteEmpty(now time.Time) {
	switch {
	case !s.complete || s.blind || len(s.services) > 0:
		s.empty = time.Time{}
	case s.empty.IsZero():
		s.empty = now
	}
}

// collect returns the state as one value.
func (s *state) collect() *messages.Snapshot {
	out := &messages.Snapshot{Node: s.node, Complete: true, Services: make([]*messages.ServiceInput, 0, len(s.services))}
	for _, key := range slices.Sorted(maps.Keys(s.services)) {
		out.Services = append(out.Services, s.services[key])
	}
	return out
}

// saves is the schedule of the saves.
type saves struct {
	stop    func() bool   // stops the timer; nil = none is set: a save is under way, or Run has ended
	due     time.Time     // time at which the timer fires
	pause   time.Duration // time from a change to its save
	changes uint64        // number of changes of the state so far
	saved   uint64        // number of these changes that are on the disk
	ended   bool          // Run ends
}

// changed schedules a save. The lock must be held.
func (s *Source) changed() {
	s.saves.changes++
	if s.saves.stop != nil { // otherwise the save under way schedules the next one
		s.saveIn(s.saves.pause)
	}
}

// saveIn schedules a save, unless an earlier save is scheduled. The lock must be held.
func (s *Source) saveIn(d time.Duration) {
	// An earlier save stays, so that changes cannot postpone it again and again.
	at := s.cfg.Now().Add(d)
	if s.saves.stop != nil {
		if !at.Before(s.saves.due) {
			return
		}
		s.saves.stop()
	}
	s.saves.due, s.saves.stop = at, s.cfg.After(d, s.scheduledSave)
}

// scheduledSave saves and schedules the next save.
func (s *Source) scheduledSave() {
	s.saving.Lock()
	defer s.saving.Unlock()
	var changes uint64
	var ended bool
	s.locked(func() {
		if s.saves.stop != nil {
			// This call may come from an older timer that fired while it was replaced.
			s.saves.stop()
		}
		s.saves.stop, changes, ended = nil, s.saves.changes, s.saves.ended
	})
	if ended {
		return // lastSave has saved
	}
	began := s.cfg.Now()
	next := s.save()
	pause := max(s.cfg.Delay, share*s.cfg.Now().Sub(began))
	s.locked(func() {
		s.saves.pause = pause
		if s.saves.changes != changes {
			next = min(next, pause)
		}
		if !s.saves.ended {
			s.saveIn(next)
		}
	})
}

// lastSave ends the schedule and saves once more.
func (s *Source) lastSave() {
	s.locked(func() {
		s.saves.ended = true
		if s.saves.stop != nil {
			s.saves.stop()
		}
	})
	s.saving.Lock()
	defer s.saving.Unlock()
	s.save()
}

// save saves the state if it has changed, or if a source that is not blind confirms it. It returns
// the time until the next save. The caller holds saving.
func (s *Source) save() (next time.Duration) {
	var m *messages.Mirror
	var empty time.Time
	var changes uint64
	s.locked(func() {
		if s.state.complete && !(s.saves.changes == s.saves.saved && s.state.blind) {
			m = &messages.Mirror{Node: s.cfg.Node, Source: s.cfg.Origin, Snapshot: s.state.collect()}
			empty, changes = s.state.empty, s.saves.changes
		}
	})
	if m == nil {
		return freshen
	}
	// Everything below works on the copy, outside the lock: encoding and the disk may take seconds.
	m.Cluster = clusterOf(m.GetSnapshot())
	now := identify(m)
	again, why, err := s.refuse(now, empty)
	if err == nil {
		m.Revision, m.Saved = s.disk.next(), s.cfg.Now().UnixNano()
		now.revision, now.saved = m.GetRevision(), m.GetSaved()
		if err = s.store.SaveSnapshot(m); err == nil {
			s.disk = now
			s.cfg.Observer.MirrorSaved(time.Unix(0, m.GetSaved()))
			s.locked(func() { s.saves.saved = changes })
			s.outcome("")
			return freshen
		}
		again, why = retry*s.cfg.Delay, "failed"
	}
	s.cfg.Observer.MirrorNotSaved(why)
	s.outcome(err.Error())
	return again
}

// next returns the revision after this one.
func (id *identity) next() uint64 {
	if id == nil {
		return 1
	}
	return id.revision + 1
}

// refuse returns the reason why a state must not replace the state on the disk, and the time after
// which to ask again. A nil error means that it may replace it.
func (s *Source) refuse(now *identity, empty time.Time) (again time.Duration, why string, err error) {
	have := s.disk
	if have != nil && !have.same(now) {
		s.cfg.Observer.MirrorNotSaved("foreign")
		path, err := s.store.PutForeignAside()
		if err != nil {
			return retry * s.cfg.Delay, "failed", err
		}
		text := fmt.Sprintf("the local mirror of %s belonged to another cluster (%s, this one is %s); it is kept as %s",
			savedAt(have.saved), called(have), called(now), path)
		s.log.Error(text)
		s.locked(func() {
			s.problem = text
			s.report()
		})
		s.disk = nil
		return 0, "", nil
	}
	// Only the loss of all services is suspicious; a cluster often loses some.
	if have == nil || have.services == 0 || now.services > 0 {
		return 0, "", nil
	}
	left := s.cfg.ConfirmEmpty
	if !empty.IsZero() {
		left -= s.cfg.Now().Sub(empty)
	}
	if left <= 0 {
		return 0, "", nil
	}
	return left, "empty", fmt.Errorf("the source has no service, so none is served; the copy of %s on disk keeps its %d services until the source has been empty for %s",
		savedAt(have.saved), have.services, s.cfg.ConfirmEmpty)
}

// called returns a name of the cluster for people.
func called(id *identity) string {
	if id.cluster != "" {
		return id.cluster
	}
	return id.source
}

// outcome reports the result of a save if it differs from the previous result.
func (s *Source) outcome(problem string) {
	s.locked(func() {
		if problem == s.saveProblem {
			return
		}
		s.saveProblem = problem
		if problem != "" {
			s.log.Warn("local mirror not saved", "err", problem)
		}
		s.report()
	})
}
