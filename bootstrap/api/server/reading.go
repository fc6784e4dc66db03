package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// view is what one listener shows of an agent.
type view struct {
	api.Backend
	server  *Server
	control bool // the control socket: VPP is read for each request, and nothing is redacted
}

// Public is the agent as the read-only listener shows it: clients share a reading of VPP, and with
// Config.Redact the contents of messages and the states of actors are missing.
func (s *Server) Public() api.Backend { return view{s.backend, s, false} }

// Diff satisfies api.Reader. On the control socket VPP was read after the request arrived, on TCP a
// little earlier.
func (v view) Diff(ctx context.Context) (*api.Diff, error) {
	return v.server.diffs.get(ctx, "", v.control)
}

// ServiceSessions satisfies api.Reader.
func (v view) ServiceSessions(ctx context.Context, key string) (*api.ServiceSessions, error) {
	if v.control {
		return v.Backend.ServiceSessions(ctx, key)
	}
	return v.server.sessions.get(ctx, key, false)
}

// Mailbox satisfies api.Reader. Types, keys and numbers are never redacted.
func (v view) Mailbox(ctx context.Context, path string) (*api.Mailbox, error) {
	box, err := v.Backend.Mailbox(ctx, path)
	if err == nil && v.redacts() {
		for i := range box.Messages {
			box.Messages[i].Body = nil
		}
	}
	return box, err
}

// State satisfies api.Reader.
func (v view) State(ctx context.Context, path string) (json.RawMessage, error) {
	if _, err := v.Actor(ctx, path); err != nil || !v.redacts() {
		return v.Backend.State(ctx, path)
	}
	return nil, fmt.Errorf("state of %s: %w: only the control socket shows it, because api.redactMessages is set", path, api.ErrForbidden)
}

func (v view) redacts() bool { return v.server.cfg.Redact && !v.control }
