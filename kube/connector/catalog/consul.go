package catalog

import (
	"context"
	"log/slog"
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
