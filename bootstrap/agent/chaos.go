package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// chaosHint says how chaos is enabled.
const chaosHint = "start the agent with --enable-chaos, or with api.enableChaos: true in its configuration"

// errChaosOff refuses chaos in an agent without it.
var errChaosOff = fmt.Errorf("chaos is off (%w): %s", api.ErrUnsupported, chaosHint)

// stage is what live chaos needs of an agent. Without --enable-chaos an agent has none: no hooks, no meter, no desk.
type stage struct {
	*live.Live
	agent   *Agent
	meter   *link.Meter
	changes atomic.Uint64

	mu  sync.Mutex    // one read-back at a time, so that own is right
	own atomic.Uint64 // reads of all rows by read-backs
}

var _ live.World = (*stage)(nil)

// prepareChaos makes the desk of an agent with --enable-chaos and puts the hooks into the options of the system; it returns the link that the
// actors get.
func (a *Agent) prepareChaos(l *link.Link, o *runtime.Options) actors.Link {
	if !a.cfg.API.EnableChaos {
		return l
	}
	s := &stage{agent: a, meter: link.NewMeter(l)}
	s.Live = live.New(live.Config{World: s, Log: a.log.With("part", "chaos")})
	o.Faults, o.Network = s.Fault, s.Network
	a.stage = s
	return s.meter
}

// startChaos lets the desk work. It is closed before the actors, so that nobody is suspended when they are to stop.
func (a *Agent) startChaos() {
	if a.stage != nil {
		a.stage.Attach(a.system)
		a.onClose("chaos", a.stage.Close)
		a.log.Warn("chaos is enabled: whoever can open the control socket can let actors fail", "socket", a.cfg.API.ControlSocket)
	}
}

// countChanges counts reasons to change VPP: changes of the source, and commands. Without chaos it does nothing.
func (s *stage) countChanges(n int) {
	if s != nil && n > 0 {
		s.changes.Add(1)
	}
}

// Readiness satisfies live.World.
func (s *stage) Readiness() (ready bool, reasons string) {
	report := s.agent.readiness.Load()
	return report.Ready, report.Reasons()
}

// Services satisfies live.World.
func (s *stage) Services(ctx context.Context) ([]live.Service, error) {
	all, err := backend{s.agent}.Services(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]live.Service, len(all))
	for i := range all {
		out[i] = live.Service{Key: all[i].Key, Generation: all[i].Generation, State: string(all[i].State), Error: all[i].Error}
	}
	return out, nil
}

// Diff satisfies live.World.
func (s *stage) Diff(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.meter.Usage().RowReads
	diff, err := backend{s.agent}.Diff(ctx)
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

// Usage satisfies live.World.
func (s *stage) Usage() link.Usage {
	u := s.meter.Usage()
	u.RowReads -= min(s.own.Load(), u.RowReads)
	return u
}

// Changes satisfies live.World. Another VPP is a change, too: it knows nothing.
func (s *stage) Changes() uint64 { return s.changes.Load() + s.meter.Usage().Boots }

// Chaos satisfies api.Reader.
func (b backend) Chaos(context.Context) (*live.Status, error) {
	if b.stage == nil {
		return &live.Status{Hint: chaosHint, Records: []live.Record{}}, nil
	}
	status := b.stage.Status()
	return &status, nil
}

// Inject satisfies api.Controller.
func (b backend) Inject(ctx context.Context, who string, fault live.Fault) (*live.Record, error) {
	if b.stage == nil {
		return nil, errChaosOff
	}
	record, err := b.stage.Inject(ctx, who, fault)
	if err != nil {
		return nil, chaosError(err)
	}
	return &record, nil
}

// StartDrill satisfies api.Controller.
func (b backend) StartDrill(ctx context.Context, who string, plan live.Plan) (*live.RunStatus, error) {
	if b.stage == nil {
		return nil, errChaosOff
	}
	run, err := b.stage.Start(ctx, who, plan)
	if err != nil {
		return nil, chaosError(err)
	}
	return &run, nil
}

// StopChaos satisfies api.Controller.
func (b backend) StopChaos(_ context.Context, who string) (int, error) {
	if b.stage == nil {
		return 0, errChaosOff
	}
	return b.stage.Stop(who), nil
}

// chaosError gives a refusal of the desk the status that it has in the API.
func chaosError(err error) error {
	for _, class := range []struct{ desk, api error }{
		{live.ErrInvalid, api.ErrInvalid},
		{live.ErrNoActor, api.ErrNotFound},
		{runtime.ErrNoActor, api.ErrNotFound},
		{live.ErrExempt, api.ErrForbidden},
		{live.ErrLimit, api.ErrConflict},
		{live.ErrBusy, api.ErrConflict},
		{live.ErrClosed, api.ErrUnavailable},
	} {
		if errors.Is(err, class.desk) {
			return refusal{err, class.api}
		}
	}
	return err
}

// refusal is an error with the class of another.
type refusal struct {
	error
	class error
}

// Unwrap satisfies errors.Unwrap.
func (r refusal) Unwrap() []error { return []error{r.error, r.class} }
