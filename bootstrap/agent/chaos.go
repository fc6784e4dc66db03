package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// stage connects live chaos with an agent. Without --enable-chaos an agent has none, so that there
// are no hooks in its actors.
type stage struct {
	*live.Live
	agent   *Agent
	meter   *link.Meter
	changes atomic.Uint64

	mu  sync.Mutex    // serialises Diff, so that own is exact
	own atomic.Uint64 // reads of all rows by Diff
}

var _ live.World = (*stage)(nil)

// prepareChaos adds the hooks of live chaos to the options of the system, if it is enabled. It
// returns the link for the actors, which counts requests then.
func (a *Agent) prepareChaos(l link.Runner, o *runtime.Options) link.Runner {
	if !a.cfg.API.EnableChaos {
		return l
	}
	s := &stage{agent: a, meter: link.NewMeter(l)}
	s.Live = live.New(live.Config{World: s, Log: a.log.With("part", "chaos")})
	o.Faults, o.Network = s.Fault, s.Network
	a.stage = s
	return s.meter
}

// startChaos attaches live chaos to the system. It ends before the actors, so that no actor is
// suspended when it has to stop.
func (a *Agent) startChaos() {
	if a.stage != nil {
		a.stage.Attach(a.system)
		a.onClose("chaos", a.stage.Close)
		a.log.Warn("chaos is enabled: clients of the control socket can inject faults", "socket", a.cfg.API.ControlSocket)
	}
}

// live returns live chaos; nil = it is off.
func (s *stage) live() *live.Live {
	if s == nil {
		return nil
	}
	return s.Live
}

// countChanges counts reasons to change VPP: changes of the cluster, and commands. A drill compares
// the number with the writes to VPP. Without chaos it does nothing.
func (s *stage) countChanges(n int) {
	if s != nil && n > 0 {
		s.changes.Add(1)
	}
}

func (s *stage) Readiness() (ready bool, reasons string) {
	report := s.agent.readiness.Load()
	return report.Ready, report.Reasons()
}

func (s *stage) Services(ctx context.Context) ([]live.Service, error) {
	all, err := s.agent.backend.Services(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]live.Service, len(all))
	for i := range all {
		out[i] = live.Service{Key: all[i].Key, Generation: all[i].Generation, State: string(all[i].State), Error: all[i].Error}
	}
	return out, nil
}

func (s *stage) Diff(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.meter.Usage().RowReads
	diff, err := s.agent.backend.Diff(ctx)
	s.own.Add(s.meter.Usage().RowReads - before)
	if err != nil {
		return nil, err
	}
	var operations []string
	for _, r := range diff.Renderers {
		if r.Error != "" {
			return nil, errors.New(r.Renderer + ": " + r.Error)
		}
		operations = append(operations, r.Operations...)
	}
	return operations, nil
}

func (s *stage) Usage() link.Usage {
	u := s.meter.Usage()
	u.RowReads -= min(s.own.Load(), u.RowReads)
	return u
}

// Changes satisfies live.World. A restart of VPP is a change, because VPP is empty after it.
func (s *stage) Changes() uint64 { return s.changes.Load() + s.meter.Usage().Boots }

// chaosHint is how to enable chaos.
const chaosHint = "start the agent with --enable-chaos, or with api.enableChaos: true in its configuration"

// errChaosOff refuses faults in an agent without --enable-chaos.
var errChaosOff = fmt.Errorf("chaos is off (%w): %s", api.ErrUnsupported, chaosHint)

func (b backend) Chaos(context.Context) (*live.Status, error) {
	if b.agent.stage.live() == nil {
		return &live.Status{Hint: chaosHint, Records: []live.Record{}}, nil
	}
	status := b.agent.stage.live().Status()
	return &status, nil
}

func (b backend) Inject(ctx context.Context, who string, fault live.Fault) (*live.Record, error) {
	if b.agent.stage.live() == nil {
		return nil, errChaosOff
	}
	record, err := b.agent.stage.live().Inject(ctx, who, fault)
	if err != nil {
		return nil, chaosError(err)
	}
	return &record, nil
}

func (b backend) StartDrill(ctx context.Context, who string, plan live.Plan) (*live.RunStatus, error) {
	if b.agent.stage.live() == nil {
		return nil, errChaosOff
	}
	run, err := b.agent.stage.live().Start(ctx, who, plan)
	if err != nil {
		return nil, chaosError(err)
	}
	return &run, nil
}

func (b backend) StopChaos(_ context.Context, who string) (int, error) {
	if b.agent.stage.live() == nil {
		return 0, errChaosOff
	}
	return b.agent.stage.live().Stop(who), nil
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

func (r refusal) Unwrap() []error { return []error{r.error, r.class} }

func (b backend) Command(ctx context.Context, path string, verb api.Verb) error {
	box, err := b.Box(path)
	if err != nil {
		return err
	}
	switch verb {
	case api.VerbKill: // a chaos fault, with exemptions, limits and the audit record
		if _, err := b.Inject(ctx, server.PeerOf(ctx), live.Fault{Kind: live.Kill, Actor: path}); err != nil {
			return fmt.Errorf("kill %s: %w", path, err)
		}
		return nil
	case api.VerbRestart:
		// a supervisor restarts an actor, in the order of the tree, only after a failure
		if err := b.agent.system.Kill(path); err != nil {
			return server.NotFound(err)
		}
	case api.VerbSuspend:
		if err := b.suspend(path, box); err != nil {
			return fmt.Errorf("suspend %s: %w", path, err)
		}
	case api.VerbResume:
		if b.agent.stage.live() == nil {
			return fmt.Errorf("resume %s: %w", path, errChaosOff)
		}
		box.Release()
	default:
		return fmt.Errorf("%s %s: %w", verb, path, api.ErrUnsupported)
	}
	b.agent.log.Info("actor command executed", "actor", path, "verb", string(verb), "who", server.PeerOf(ctx))
	return nil
}

// suspend closes the mailbox of an actor until it is resumed. Like the fault suspend it needs chaos
// and has exemptions: the root and the supervisors repair failures, and the journal has the audit
// record.
func (b backend) suspend(path string, box *runtime.Mailbox) error {
	if b.agent.stage.live() == nil {
		return errChaosOff
	}
	supervises := func(s runtime.ActorState) bool { return s.Parent == path }
	switch {
	case path == address.RootName || path == address.Journal:
		return fmt.Errorf("%w: the actor is exempt", api.ErrForbidden)
	case path == address.Services || slices.ContainsFunc(b.agent.system.Snapshot(), supervises):
		return fmt.Errorf("%w: a supervisor is exempt: choose one of its children", api.ErrForbidden)
	case box.State().Held:
		return fmt.Errorf("%w: it is suspended already", api.ErrConflict)
	}
	box.Hold()
	return nil
}
