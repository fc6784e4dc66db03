package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	actorlink "github.com/troupe-vpp/troupe/actors/link"
	"github.com/troupe-vpp/troupe/actors/runtime"
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
func (a *Agent) prepareChaos(l link.Runner, o *runtime.Options) actorlink.Link {
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

// Readiness satisfies live.World.
func (s *stage) Readiness() (ready bool, reasons string) {
	report := s.agent.readiness.Load()
	return report.Ready, report.Reasons()
}

// Services satisfies live.World.
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

// Diff satisfies live.World.
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

// Usage satisfies live.World.
func (s *stage) Usage() link.Usage {
	u := s.meter.Usage()
	u.RowReads -= min(s.own.Load(), u.RowReads)
	return u
}

// Changes satisfies live.World. A restart of VPP is a change, because VPP is empty after it.
func (s *stage) Changes() uint64 { return s.changes.Load() + s.meter.Usage().Boots }
