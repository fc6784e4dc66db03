package backend

import (
	"context"
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/peer"
	"github.com/troupe-vpp/troupe/bootstrap/inspect"
)

// Command satisfies api.Controller.
func (b Backend) Command(ctx context.Context, path string, verb api.Verb) error {
	box, err := b.Box(path)
	if err != nil {
		return err
	}
	switch verb {
	case api.VerbKill: // a chaos fault, with exemptions, limits and the audit record
		if _, err := b.Inject(ctx, peer.Of(ctx), live.Fault{Kind: live.Kill, Actor: path}); err != nil {
			return fmt.Errorf("kill %s: %w", path, err)
		}
		return nil
	case api.VerbRestart:
		// a supervisor restarts an actor, in the order of the tree, only after a failure
		if err := b.system().Kill(path); err != nil {
			return inspect.NotFound(err)
		}
	case api.VerbSuspend:
		if err := b.suspend(path, box); err != nil {
			return fmt.Errorf("suspend %s: %w", path, err)
		}
	case api.VerbResume:
		if b.agent.Chaos() == nil {
			return fmt.Errorf("resume %s: %w", path, errChaosOff)
		}
		box.Release()
	default:
		return fmt.Errorf("%s %s: %w", verb, path, api.ErrUnsupported)
	}
	b.agent.Log.Info("actor command executed", "actor", path, "verb", string(verb), "who", peer.Of(ctx))
	return nil
}

// suspend closes the mailbox of an actor until it is resumed. Like the fault suspend it needs chaos
// and has exemptions: the root and the supervisors repair failures, and the journal has the audit
// record.
func (b Backend) suspend(path string, box *runtime.Mailbox) error {
	if b.agent.Chaos() == nil {
		return errChaosOff
	}
	supervises := func(s runtime.ActorState) bool { return s.Parent == path }
	switch {
	case path == address.RootName || path == address.Journal:
		return fmt.Errorf("%w: the actor is exempt", api.ErrForbidden)
	case path == address.Services || slices.ContainsFunc(b.system().Snapshot(), supervises):
		return fmt.Errorf("%w: a supervisor is exempt: choose one of its children", api.ErrForbidden)
	case box.State().Held:
		return fmt.Errorf("%w: it is suspended already", api.ErrConflict)
	}
	box.Hold()
	return nil
}
