package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// followed is the number of services up to which a blocking query waits for each. Consul
	// allows a client 200 connections.
	followed = 128
	readers  = 16 // queries of services that do not block, at the same time
	// connections is one for each query, and one for the query of the names.
	connections = followed + readers + 1

	// spacing is the least time between two blocking queries, and between two snapshots.
	spacing = 100 * time.Millisecond
	// share is the time that each service adds to the pause between two sweeps, at least a second.
	share = 2 * time.Millisecond
)

// retries returns the delays after failed queries, which double up to a minute. Each is a random
// half to all of it, so that connectors that failed together do not retry together.
func retries(least time.Duration) wait.Backoff {
	return wait.Backoff{Duration: least / 2, Factor: 2, Jitter: 1, Steps: 32, Cap: time.Minute / 2}
}

// Consul follows a datacenter. It is a catalog.Source.
type Consul struct {
	client *client
	log    *slog.Logger
}

// NewConsul returns a source. The error names the option that cannot be used.
func NewConsul(o ConsulOptions, log *slog.Logger) (*Consul, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return &Consul{client: c, log: log}, nil
}

// Run satisfies catalog.Source. It never fails: a failed query makes a snapshot incomplete or a
// service unknown.
func (s *Consul) Run(ctx context.Context, publish func(Snapshot)) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer s.client.http.CloseIdleConnections()
	defer group.Wait()
	defer cancel()
	reports, wanted := make(chan any), make(chan string)
	group.Go(func() { s.names(ctx, reports) })
	for range readers {
		group.Go(func() { s.sweep(ctx, wanted, reports) })
	}
	st := newState(s.client.options.Limits.All, func(name string) context.CancelFunc {
		ctx, cancel := context.WithCancel(ctx)
		group.Go(func() { s.service(ctx, name, reports) })
		return cancel
	})
	var due, again <-chan time.Time // of the next snapshot, and of the next sweep
	for {
		next, name := chan<- string(nil), ""
		if len(st.queue) > 0 {
			next, name = wanted, st.queue[0]
		} else if again == nil && len(st.services) > followed {
			again = time.After(wait.Jitter(max(time.Second, time.Duration(len(st.services))*share), 0.5))
		}
		select {
		case <-ctx.Done():
			return nil
		case next <- name:
			st.queue = st.queue[1:]
		case <-again:
			again = nil
			st.sweep()
		case r := <-reports:
			if st.take(r) && due == nil {
				due = time.After(spacing)
			}
		case <-due:
			due = nil
			publish(st.snapshot())
		}
	}
}

// names follows the names of all services by blocking queries until ctx ends.
func (s *Consul) names(ctx context.Context, reports chan<- any) {
	failed := false
	s.follow(ctx, func(index uint64) (uint64, time.Duration, error) {
		var r listing
		limits := &s.client.options.Limits
		next, err := s.client.get(ctx, index, limits.List, func(a *answer) (err error) {
			r.names, err = decodeNames(a, limits.Services)
			return err
		}, "catalog", "services")
		r.repeated, r.err = err == nil && index != 0 && next == index, err
		switch {
		case ctx.Err() != nil:
		case err != nil && !failed:
			s.log.Warn("query of Consul failed, retrying", "err", err)
		case err == nil && failed:
			s.log.Info("query of Consul answered again")
		}
		failed = err != nil
		send(ctx, reports, r)
		return next, spacing, err
	})
}

// service follows one service by blocking queries until ctx ends.
func (s *Consul) service(ctx context.Context, name string, reports chan<- any) {
	s.follow(ctx, func(index uint64) (uint64, time.Duration, error) {
		next, err := s.read(ctx, index, name, reports)
		return next, spacing, err
	})
}

// sweep reads the services of the channel until ctx ends.
func (s *Consul) sweep(ctx context.Context, names <-chan string, reports chan<- any) {
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-names:
			_, _ = s.read(ctx, 0, name, reports) // the next sweep reads it again
		}
	}
}

// read reads one service; it returns the index of the answer. index is that of the answer before,
// for a blocking query; 0 = none.
func (s *Consul) read(ctx context.Context, index uint64, name string, reports chan<- any) (uint64, error) {
	r := reading{name: name}
	next, err := s.client.get(ctx, index, s.client.options.Limits.Body, func(a *answer) (err error) {
		r.found, err = decodeInstances(a, &s.client.options)
		return err
	}, "health", "service", name)
	r.err = err
	send(ctx, reports, r)
	return next, err
}

// follow asks until ctx ends. ask gets the index of the answer before, 0 = none, and returns the
// next one and the pause after it.
func (s *Consul) follow(ctx context.Context, ask func(index uint64) (next uint64, pause time.Duration, err error)) {
	var index uint64
	delays := retries(time.Second)
	for {
		next, pause, err := ask(index)
		index = next
		if err != nil {
			index, pause = 0, delays.Step()
		} else {
			delays = retries(time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// send sends a report, unless ctx has ended or ends first.
func send(ctx context.Context, to chan<- any, report any) {
	if ctx.Err() != nil {
		return
	}
	select {
	case <-ctx.Done():
	case to <- report:
	}
}

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
