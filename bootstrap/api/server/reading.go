package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// readingShared is the time for which clients on TCP get the result of a reading of VPP again. VPP
// answers under a barrier that stops its workers, for tens of milliseconds at 10,000 rows. So the
// rate of readings must not depend on the number of clients.
const readingShared = 5 * time.Second

// reader reads something of VPP for clients, once at a time.
type reader[T any] struct {
	read    func(ctx context.Context, key string) (T, error)
	ending  context.Context
	timeout time.Duration
	turn    chan struct{} // a token; its holder owns the following

	key          string
	begun, ended time.Time // of the last reading
	value        T
	err          error
}

func newReader[T any](ending context.Context, timeout time.Duration, read func(context.Context, string) (T, error)) *reader[T] {
	return &reader[T]{read: read, ending: ending, timeout: timeout, turn: make(chan struct{}, 1)}
}

// get returns the last reading if it has the same key and has ended lately. A fresh one must have
// begun after the request arrived, because the client wants to see a change that it has made.
// Otherwise get reads; the reading outlives its client, because others wait for it. If a reading of
// another key is too recent, get returns an error.
func (r *reader[T]) get(ctx context.Context, key string, fresh bool) (none T, err error) {
	arrived := time.Now()
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return none, fmt.Errorf("read VPP: %w", ctx.Err())
	}
	if age := time.Since(r.ended); fresh && !r.begun.Before(arrived) || !fresh && age < readingShared {
		if r.key == key {
			return r.value, r.err
		}
		return none, fmt.Errorf("%w: VPP was read for %s %s ago, and it is asked every %s: try again, or ask the control socket",
			api.ErrUnavailable, r.key, age.Round(time.Second/10), readingShared)
	}
	ctx, stop := context.WithTimeout(r.ending, r.timeout)
	defer stop()
	begun := time.Now()
	value, err := r.read(ctx, key)
	if !errors.Is(err, api.ErrNotFound) { // VPP was asked
		r.key, r.begun, r.ended, r.value, r.err = key, begun, time.Now(), value, err
	}
	return value, err
}

// datedDiff reads the difference between VPP and the desired state.
func (s *Server) datedDiff(ctx context.Context, _ string) (*api.Diff, error) {
	begun := time.Now()
	diff, err := s.backend.Diff(ctx)
	if err != nil {
		return nil, err
	}
	dated := *diff
	dated.Time = begun
	return &dated, nil
}

// diff answers with the difference between VPP and the desired state. On the control socket it was
// read after the request arrived, on TCP it may be a little older.
func (s *Server) diff(control bool) get {
	return plain(func(ctx context.Context) (*api.Diff, error) { return s.diffs.get(ctx, "", control) })
}

// Diff answers in the same way as the read-only listener: clients share a reading of VPP.
func (s *Server) Diff(ctx context.Context) (*api.Diff, error) { return s.diffs.get(ctx, "", false) }

// serviceSessions answers the sessions of a service.
func (s *Server) serviceSessions(control bool) get {
	return func(r *http.Request) (any, error) {
		if _, err := parameters(r.URL.RawQuery); err != nil {
			return nil, err
		}
		key := r.PathValue("namespace") + "/" + r.PathValue("name")
		if control {
			return s.backend.ServiceSessions(r.Context(), key)
		}
		return s.ServiceSessions(r.Context(), key)
	}
}

// ServiceSessions answers in the same way as the read-only listener: clients share a reading of
// VPP.
func (s *Server) ServiceSessions(ctx context.Context, key string) (*api.ServiceSessions, error) {
	return s.sessions.get(ctx, key, false)
}
