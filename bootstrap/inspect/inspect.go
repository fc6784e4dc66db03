// Package inspect answers what the API asks about the actors of a system, of the agent as well as of the connector, from their mailboxes: no message is sent,
// but for State, so that it works while actors hang. It has no state; any goroutine may call it.
package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// Tree are the actors of the system that the function returns: a server listens before there is one, and serves when it is there.
type Tree func() *runtime.System

// Actors satisfies api.Reader. It reads the mailboxes, in the order of their paths, and sends no message, so that it works while actors hang.
func (t Tree) Actors(context.Context) ([]api.Actor, error) {
	states := t().Snapshot()
	out := make([]api.Actor, len(states))
	now := time.Now()
	for i := range states {
		out[i] = actorOf(&states[i], now)
	}
	return out, nil
}

// Actor satisfies api.Reader.
func (t Tree) Actor(_ context.Context, path string) (*api.Actor, error) {
	state, ok := t().Actor(path)
	if !ok {
		return nil, fmt.Errorf("actor %s: %w", path, api.ErrNotFound)
	}
	actor := actorOf(&state, time.Now())
	return &actor, nil
}

// actorOf converts the state of a mailbox. Pending includes system messages, because they also keep an actor busy.
func actorOf(s *runtime.ActorState, now time.Time) api.Actor {
	return api.Actor{
		Path: s.Path, Kind: s.Kind, State: string(s.State), Incarnation: s.Incarnation, Pending: uint64(s.User + s.System), Received: s.Posted,
		Coalesced: s.Coalesced, Restarts: s.Restarts, Failures: s.Panics, BusySeconds: s.Busy.Seconds(), LastMessage: s.Last,
		Since: now.Add(-s.Uptime).Truncate(time.Millisecond), LastFailure: s.LastFailure,
	}
}

// Mailbox satisfies api.Reader.
func (t Tree) Mailbox(_ context.Context, path string) (*api.Mailbox, error) {
	box, err := t.Box(path)
	if err != nil {
		return nil, err
	}
	waiting := box.Pending()
	out := &api.Mailbox{Path: path, Held: box.State().Held, Pending: len(waiting), Messages: make([]api.Waiting, min(len(waiting), api.MaxLimit))}
	for i, m := range waiting[:len(out.Messages)] {
		out.Messages[i] = api.Waiting{Type: m.Type, Key: m.Key}
	}
	return out, nil
}

// Failures satisfies api.Reader.
func (t Tree) Failures(_ context.Context, path string) ([]api.Failure, error) {
	box, err := t.Box(path)
	if err != nil {
		return nil, err
	}
	failures := box.Failures()
	out := make([]api.Failure, len(failures))
	for i, f := range failures {
		out[i] = api.Failure{
			Time: f.At, Incarnation: f.Incarnation, Reason: f.Reason, Message: f.Message, Decision: f.Decision, Stack: f.Stack,
		}
	}
	slices.SortStableFunc(out, func(a, b api.Failure) int { return b.Time.Compare(a.Time) })
	return out, nil
}

// State satisfies api.Reader.
func (t Tree) State(ctx context.Context, path string) (json.RawMessage, error) {
	text, err := t().Inspect(ctx, path)
	if err != nil {
		return nil, NotFound(err)
	}
	return json.RawMessage(text), nil
}

// NotFound translates the runtime's error for an actor that does not exist.
func NotFound(err error) error {
	if errors.Is(err, runtime.ErrNoActor) {
		return fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	return fmt.Errorf("%w: %w", api.ErrUnavailable, err)
}

// Box returns the mailbox of an actor.
func (t Tree) Box(path string) (*runtime.Mailbox, error) {
	box, ok := t().Mailbox(path)
	if !ok {
		return nil, fmt.Errorf("actor %s: %w", path, api.ErrNotFound)
	}
	return box, nil
}
