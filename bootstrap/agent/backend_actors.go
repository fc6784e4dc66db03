package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// Actors satisfies api.Reader. It reads the mailboxes and sends no message, so that it works while actors hang.
func (b backend) Actors(context.Context) ([]api.Actor, error) {
	states := b.system.Snapshot()
	out := make([]api.Actor, len(states))
	for i := range states {
		out[i] = actorOf(&states[i])
	}
	slices.SortFunc(out, func(a, b api.Actor) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// Actor satisfies api.Reader.
func (b backend) Actor(_ context.Context, path string) (*api.Actor, error) {
	state, ok := b.system.Actor(path)
	if !ok {
		return nil, fmt.Errorf("actor %s: %w", path, api.ErrNotFound)
	}
	actor := actorOf(&state)
	return &actor, nil
}

// actorOf converts the state of a mailbox. Pending includes system messages, because they also keep an actor busy.
func actorOf(s *runtime.ActorState) api.Actor {
	return api.Actor{
		Path: s.Path, Kind: s.Kind, State: string(s.State), Incarnation: s.Incarnation, Pending: uint64(s.User + s.System), Received: s.Posted,
		Coalesced: s.Coalesced, Restarts: s.Restarts, Failures: s.Panics, BusySeconds: s.Busy.Seconds(), LastMessage: s.Last,
		Since: time.Now().Add(-s.Uptime).Truncate(time.Millisecond), LastFailure: s.LastFailure,
	}
}

// Mailbox satisfies api.Reader.
func (b backend) Mailbox(_ context.Context, path string) (*api.Mailbox, error) {
	box, err := b.box(path)
	if err != nil {
		return nil, err
	}
	waiting := box.Pending()
	out := &api.Mailbox{Path: path, Held: box.State().Held, Pending: len(waiting), Messages: make([]api.Waiting, len(waiting))}
	for i, m := range waiting {
		out.Messages[i] = api.Waiting{Type: m.Type, Key: m.Key}
	}
	return out, nil
}

// Failures satisfies api.Reader.
func (b backend) Failures(_ context.Context, path string) ([]api.Failure, error) {
	box, err := b.box(path)
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

// Command satisfies api.Controller.
func (b backend) Command(ctx context.Context, path string, verb api.Verb) error {
	box, err := b.box(path)
	if err != nil {
		return err
	}
	switch verb {
	case api.VerbKill: // a chaos fault, with exemptions, limits and the audit record
		if _, err := b.Inject(ctx, api.Peer(ctx), live.Fault{Kind: live.Kill, Actor: path}); err != nil {
			return fmt.Errorf("kill %s: %w", path, err)
		}
		return nil
	case api.VerbRestart: // only a failure makes a supervisor restart an actor, in the order of the tree
		if err := b.system.Kill(path); err != nil {
			return notFound(err)
		}
	case api.VerbSuspend:
		if err := b.suspend(path, box); err != nil {
			return fmt.Errorf("suspend %s: %w", path, err)
		}
	case api.VerbResume:
		if b.stage == nil {
			return fmt.Errorf("resume %s: %w", path, errChaosOff)
		}
		box.Release()
	default:
		return fmt.Errorf("%s %s: %w", verb, path, api.ErrUnsupported)
	}
	b.log.Info("actor command executed", "actor", path, "verb", string(verb), "who", api.Peer(ctx))
	return nil
}

// suspend closes the mailbox of an actor until it is resumed. Like the fault of that name it needs chaos, and has its exemptions: without the
// root or a supervisor no failure is repaired, and the journal keeps the audit record.
func (b backend) suspend(path string, box *runtime.Mailbox) error {
	if b.stage == nil {
		return errChaosOff
	}
	supervises := func(s runtime.ActorState) bool { return s.Parent == path }
	switch {
	case path == address.RootName || path == address.Journal:
		return fmt.Errorf("%w: the actor is exempt", api.ErrForbidden)
	case path == address.Services || slices.ContainsFunc(b.system.Snapshot(), supervises):
		return fmt.Errorf("%w: a supervisor is exempt: choose one of its children", api.ErrForbidden)
	case box.State().Held:
		return fmt.Errorf("%w: it is suspended already", api.ErrConflict)
	}
	box.Hold()
	return nil
}

// box returns the mailbox of an actor.
func (b backend) box(path string) (*runtime.Mailbox, error) {
	box, ok := b.system.Mailbox(path)
	if !ok {
		return nil, fmt.Errorf("actor %s: %w", path, api.ErrNotFound)
	}
	return box, nil
}
