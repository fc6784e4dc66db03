package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// chaosHint is how to enable chaos.
const chaosHint = "start the agent with --enable-chaos, or with api.enableChaos: true in its configuration"

// errChaosOff refuses faults in an agent without --enable-chaos.
var errChaosOff = fmt.Errorf("chaos is off (%w): %s", api.ErrUnsupported, chaosHint)

// Chaos satisfies api.Reader.
func (b Backend) Chaos(context.Context) (*live.Status, error) {
	if b.agent.Chaos() == nil {
		return &live.Status{Hint: chaosHint, Records: []live.Record{}}, nil
	}
	status := b.agent.Chaos().Status()
	return &status, nil
}

// Inject satisfies api.Controller.
func (b Backend) Inject(ctx context.Context, who string, fault live.Fault) (*live.Record, error) {
	if b.agent.Chaos() == nil {
		return nil, errChaosOff
	}
	record, err := b.agent.Chaos().Inject(ctx, who, fault)
	if err != nil {
		return nil, chaosError(err)
	}
	return &record, nil
}

// StartDrill satisfies api.Controller.
func (b Backend) StartDrill(ctx context.Context, who string, plan live.Plan) (*live.RunStatus, error) {
	if b.agent.Chaos() == nil {
		return nil, errChaosOff
	}
	run, err := b.agent.Chaos().Start(ctx, who, plan)
	if err != nil {
		return nil, chaosError(err)
	}
	return &run, nil
}

// StopChaos satisfies api.Controller.
func (b Backend) StopChaos(_ context.Context, who string) (int, error) {
	if b.agent.Chaos() == nil {
		return 0, errChaosOff
	}
	return b.agent.Chaos().Stop(who), nil
}

// chaosError adds the error class of the API to a refusal.
func chaosError(err error) error {
	for _, class := range []struct{ live, api error }{
		{live.ErrInvalid, api.ErrInvalid},
		{live.ErrNoActor, api.ErrNotFound},
		{runtime.ErrNoActor, api.ErrNotFound},
		{live.ErrExempt, api.ErrForbidden},
		{live.ErrLimit, api.ErrConflict},
		{live.ErrBusy, api.ErrConflict},
		{live.ErrClosed, api.ErrUnavailable},
	} {
		if errors.Is(err, class.live) {
			return refusal{err, class.api}
		}
	}
	return err
}

// refusal is an error with a further class.
type refusal struct {
	error
	class error
}

// Unwrap satisfies errors.Unwrap.
func (r refusal) Unwrap() []error { return []error{r.error, r.class} }
