package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// The reports of the goroutines of Consul.Run.
type (
	// listing holds the names of all services; with an error it is not complete. repeated = the
	// names are those of the answer before.
	listing struct {
		names    []string
		repeated bool
		err      error
	}
	// reading holds the content of one service.
	reading struct {
		name string
		found
		err error
	}
)

// state is the last answers of Consul. Only the goroutine of Run uses it.
type state struct {
	listed   bool  // the last answer with the names is usable
	repeated bool  // the names were confirmed since the last snapshot
	err      error // of that answer
	services map[string]*consulService
	follow   func(name string) (stop context.CancelFunc)
	queue    []string // services that a sweep has to read
	most     int      // instances of all services
	have     int      // instances of all services now
}

// consulService is one service of the catalog.
type consulService struct {
	found
	err    error
	unread bool               // never read
	stop   context.CancelFunc // of its blocking queries; nil = sweeps read it
}

// newState returns the state before the first answer. It calls follow for each service, as long as
// there are few enough of them.
func newState(most int, follow func(name string) (stop context.CancelFunc)) *state {
	return &state{most: most, services: map[string]*consulService{}, follow: follow}
}

// take adds a report to the state, and reports whether a snapshot should be published.
func (st *state) take(report any) bool {
	switch r := report.(type) {
	case listing:
		st.list(r)
		return true // an unchanged answer confirms the one before
	case reading:
		return st.read(r)
	}
	return false
}

// list takes the names. Sweeps read services, the new ones at once, if there are too many of them
// for blocking queries.
func (st *state) list(r listing) {
	st.listed, st.repeated, st.err = r.err == nil, r.repeated, r.err
	if r.err != nil && r.names == nil {
		return
	}
	wanted, added := map[string]bool{}, []string{}
	for _, name := range r.names {
		wanted[name] = true
		if st.services[name] == nil {
			st.services[name] = &consulService{unread: true}
			added = append(added, name)
		}
	}
	many := len(wanted) > followed
	for name, s := range st.services {
		if s.stop != nil && (many || !wanted[name]) {
			s.stop()
			s.stop = nil
		}
		if !wanted[name] {
			st.have -= len(s.instances)
			delete(st.services, name)
		}
	}
	if many {
		st.queue = append(added, st.queue...)
		return
	}
	st.queue = nil
	for _, name := range r.names {
		if s := st.services[name]; s.stop == nil {
			s.stop = st.follow(name)
		}
	}
}

// sweep has all services read.
func (st *state) sweep() { st.queue = slices.Sorted(maps.Keys(st.services)) }

// read takes one service, and reports whether it has changed.
func (st *state) read(r reading) bool {
	s := st.services[r.name]
	if s == nil {
		return false // it is gone
	}
	have := st.have - len(s.instances) + len(r.instances)
	if r.err == nil && have > st.most {
		r.err = fmt.Errorf("more than %d instances of all services", st.most)
	}
	if r.err != nil {
		have, r.found = st.have, s.found // still known
	}
	changed := (s.err == nil) != (r.err == nil) || s.unread || !s.equal(r.found)
	st.have, s.unread, s.found, s.err = have, false, r.found, r.err
	return changed
}

// snapshot returns the known state. The confirmation of the names appears in one snapshot only.
func (st *state) snapshot() Snapshot {
	out := Snapshot{Complete: st.listed, Repeated: st.repeated}
	st.repeated = false
	if st.err != nil {
		out.Problems = append(out.Problems, Problem{Reason: ReasonSource, Message: st.err.Error()})
	}
	for _, name := range slices.Sorted(maps.Keys(st.services)) {
		s := st.services[name]
		if s.err != nil {
			out.Problems = append(out.Problems, Problem{Service: name, Reason: ReasonSource, Message: s.err.Error()})
		}
		switch {
		case s.unread || s.absent || s.err != nil:
			out.Services = append(out.Services, Service{Name: name, Unknown: true})
		case !s.foreign:
			out.Services = append(out.Services, Service{Name: name, Instances: s.instances})
		}
	}
	return out
}
