package catalog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	readers = 16 // services read at the same time
	// connections is one for each reader and for each blocking query. A Consul agent allows a
	// client 200.
	connections = readers + 3
)

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

// The reports of the goroutines of Run.
type (
	// list holds the names of all services, all critical checks, or the addresses of all nodes.
	// moved says that it may differ from the list before. With an error it is not complete.
	list[T any] struct {
		all   T
		moved bool
		err   error
	}
	// reading holds the content of one service.
	reading struct {
		name string
		found
		err error
	}
)

// Run satisfies catalog.Source. It never fails: a failed query makes a snapshot incomplete or a
// service unknown.
func (s *Consul) Run(ctx context.Context, publish func(Snapshot)) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer s.client.http.CloseIdleConnections()
	defer group.Wait()
	defer cancel()
	reports, wanted := make(chan any), make(chan string)
	c, limits := s.client, &s.client.options.Limits
	group.Go(func() { s.follow(ctx, reports, query(c, decodeNames, limits.Services, "catalog", "services")) })
	// Consul answers when a check becomes critical or stops being critical, not at other
	// changes.
	group.Go(func() { s.follow(ctx, reports, query(c, decodeChecks, limits.All, "health", "state", "critical")) })
	// A new address of a node changes nothing in the catalog of services.
	group.Go(func() { s.follow(ctx, reports, query(c, decodeNodes, limits.All, "catalog", "nodes")) })
	for range readers {
		group.Go(func() { s.read(ctx, wanted, reports) })
	}
	st := newState(s.client.options.Limits.All)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(st.due()))
		next, name := chan<- string(nil), st.first()
		if name != "" {
			next = wanted
		}
		select {
		case <-ctx.Done():
			return nil
		case next <- name:
			st.begin(name)
		case r := <-reports:
			st.take(r, time.Now())
		case <-timer.C:
			if st.tick(time.Now()) {
				publish(st.snapshot())
			}
		}
	}
}

// follow asks by blocking queries until ctx ends: each answer and each failure is reported.
func (s *Consul) follow(ctx context.Context, reports chan<- any, ask func(ctx context.Context, index uint64) (report any, next uint64, err error)) {
	var index uint64
	delay := firstDelay
	for {
		report, next, err := ask(ctx, index)
		if ctx.Err() != nil {
			return
		}
		index = next
		pause := spacing
		switch {
		case err != nil:
			if delay == firstDelay {
				s.log.Warn("query of Consul failed, retrying", "err", err)
			}
			index, pause, delay = 0, jittered(delay), min(2*delay, longestDelay)
		case delay != firstDelay:
			s.log.Info("query of Consul answered again")
			delay = firstDelay
		}
		if !send(ctx, reports, report) || !sleep(ctx, pause) {
			return
		}
	}
}

// query returns a query of a list of the whole datacenter, for follow.
func query[T any](c *client, decode func(a *answer, most int) (T, error), most int, segments ...string) func(ctx context.Context, index uint64) (any, uint64, error) {
	return func(ctx context.Context, index uint64) (any, uint64, error) {
		var out list[T]
		next, err := c.get(ctx, index, c.options.Limits.List, func(a *answer) (err error) {
			out.all, err = decode(a, most)
			return err
		}, segments...)
		out.moved, out.err = index == 0 || next != index, err
		return out, next, err
	}
}

// read reads the services of the channel until ctx ends.
func (s *Consul) read(ctx context.Context, names <-chan string, reports chan<- any) {
	for {
		var r reading
		select {
		case <-ctx.Done():
			return
		case r.name = <-names:
		}
		_, r.err = s.client.get(ctx, 0, s.client.options.Limits.Body, func(a *answer) (err error) {
			r.found, err = decodeInstances(a, &s.client.options)
			return err
		}, "health", "service", r.name)
		if !send(ctx, reports, r) {
			return
		}
	}
}

// send sends a report; it returns false if ctx ends first.
func send(ctx context.Context, reports chan<- any, report any) bool {
	select {
	case <-ctx.Done():
		return false
	case reports <- report:
		return true
	}
}

// sleep waits; it returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
