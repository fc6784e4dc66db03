package simulated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// settleTimeout is the time that the agent has to be in sync.
const settleTimeout = 20 * time.Second

// favourite is the service of the actor that the demo kills, if the cluster has it.
const favourite = "shop/web"

// stage is a running agent with its cluster.
type stage struct {
	*agent.Agent
	services int           // in the cluster
	quiet    time.Duration // time of observation after a fault
	// step tells the user what has just happened; nil = nothing is told.
	step func(text string)
}

// tell tells a step.
func (a *stage) tell(format string, args ...any) {
	if a.step != nil {
		a.step(fmt.Sprintf(format, args...))
	}
}

// prove verifies every service in VPP, then the cost of faults.
func (a *stage) prove(ctx context.Context, started time.Time) (*Report, error) {
	report, statuses, err := a.look(ctx)
	if err != nil {
		return nil, err
	}
	report.InSyncAfter = report.settled.Sub(started).Round(time.Millisecond).String()
	a.tell("%d of %d services are in sync, %d rows are in VPP", report.InSync, report.Services, report.Rows)
	a.tell("%d addresses answered as they should to %s", len(report.Probes)-len(report.deviating()), "clients in a pod, on the node and outside")
	for _, fault := range faults(statuses, a.Renderers()) {
		drill, err := a.kill(ctx, fault.what, fault.path)
		if err != nil {
			return nil, err
		}
		report.Drills = append(report.Drills, drill)
		a.tell("%s: in sync again after %s, %d writes to VPP, %d readings of its rows", drill.Fault, drill.Recovered, drill.VPPWrites, drill.VPPReads)
	}
	report.judge()
	return report, nil
}

// look waits until the agent is in sync and compares its state with the state of VPP.
func (a *stage) look(ctx context.Context) (*Report, []*messages.ServiceStatus, error) {
	statuses, services, err := a.settle(ctx)
	if err != nil {
		return nil, nil, err
	}
	report := &Report{settled: time.Now(), Services: len(statuses), Rows: a.rowsInVPP(), Probes: []Probe{}, Drills: []Drill{}}
	for i := range services {
		s := &services[i]
		row := ServiceRow{Service: s.Key, Frontends: []string{}, Rows: s.Rows, Backends: s.Endpoints, Served: s.Served, State: s.State}
		for _, f := range statuses[i].GetView().GetFrontends() { // two rows of one are neighbours
			row.Frontends = append(row.Frontends, service.FrontendText(f))
		}
		row.Frontends = slices.Compact(row.Frontends)
		report.Table = append(report.Table, row)
		if !slices.Contains([]api.ServiceState{api.ServicePending, api.ServiceFailed, api.ServiceQuarantined}, s.State) {
			report.InSync++
		}
	}
	report.Probes = newProber(a.Agent, statuses).all()
	return report, statuses, nil
}

// rowsInVPP counts the rows in VPP itself, independently of the agent.
func (a *stage) rowsInVPP() int {
	rows := 0
	for _, text := range a.Simulator().Rows() {
		if strings.Contains(text, " lb [") {
			rows++
		}
	}
	return rows
}

// fault is an actor to kill.
type fault struct{ what, path string }

// faults are the actors whose failure must not change VPP: one of each kind that holds state.
func faults(statuses []*messages.ServiceStatus, renderers []string) []fault {
	key := ""
	for _, s := range statuses {
		if s.GetKey() == favourite || key == "" && len(s.GetView().GetFrontends()) > 0 {
			key = s.GetKey()
		}
	}
	var out []fault
	if key != "" {
		out = append(out, fault{"service actor " + key + " killed", address.Service(key)})
	}
	for _, renderer := range renderers {
		out = append(out, fault{"renderer " + renderer + " killed", address.Renderer(renderer)})
	}
	return append(out, fault{"registry killed", address.Registry})
}

// settle waits until the agent is ready and every service is in sync, twice in a row. The first
// time, the acknowledgement of an actor that has just restarted may still be on its way.
func (a *stage) settle(ctx context.Context) ([]*messages.ServiceStatus, []api.Service, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, errUnsettled)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	var known []api.Service
	for agreed := 0; ; {
		statuses, services, err := a.Statuses(ctx)
		if err == nil {
			known = services
		}
		agreed++
		if err != nil || !a.Backend().Readiness().Ready || len(a.open(services)) > 0 {
			agreed = 0
		}
		if agreed == 2 {
			return statuses, services, nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, nil, a.unsettled(context.Cause(ctx), known)
		}
	}
}

// open lists unknown and pending services. A failed service is not among them; the report shows it.
func (a *stage) open(services []api.Service) (reasons []string) {
	if len(services) != a.services {
		reasons = append(reasons, fmt.Sprintf("%d of %d services are known", len(services), a.services))
	}
	for i := range services {
		if services[i].State == api.ServicePending {
			reasons = append(reasons, services[i].Key+" is pending")
		}
	}
	return reasons
}

// unsettled explains why the agent is not in sync.
func (a *stage) unsettled(cause error, services []api.Service) error {
	var reasons []string
	for _, p := range a.Backend().Readiness().Parts {
		if !p.OK {
			reasons = append(reasons, p.Name+": "+p.Reason)
		}
	}
	return fmt.Errorf("%w: %s", cause, strings.Join(append(reasons, a.open(services)...), "; "))
}

// errUnsettled means that the agent was not in sync in time.
var errUnsettled = errors.New("not in sync after " + settleTimeout.String())

// quietFor is the time during which the demo observes VPP after a fault: longer than the retry
// interval of actors.
const quietFor = 1500 * time.Millisecond

// kill fails one actor and counts the requests to VPP until the agent has been in sync again for
// quietFor.
func (a *stage) kill(ctx context.Context, what, path string) (Drill, error) {
	drill := Drill{Fault: what}
	before, usage, rows, restarts := a.Simulator().Counters(), a.Usage(), a.Simulator().Rows(), a.Restarts(path)
	started := time.Now()
	if err := a.Kill(path); err != nil {
		return drill, fmt.Errorf("%s: %w", what, err)
	}
	if err := a.restarted(ctx, path, restarts); err != nil {
		return drill, fmt.Errorf("%s: %w", what, err)
	}
	if _, _, err := a.settle(ctx); err != nil {
		return drill, fmt.Errorf("%s: %w", what, err)
	}
	drill.Recovered = time.Since(started).Round(time.Millisecond).String()
	select {
	case <-ctx.Done():
		return drill, ctx.Err()
	case <-time.After(a.quiet):
	}
	after := a.Simulator().Counters()
	drill.VPPWrites, drill.VPPReads = after.Mutating()-before.Mutating(), a.Usage().RowReads-usage.RowReads
	drill.OK = drill.VPPWrites == 0 && drill.VPPReads <= 1 && slices.Equal(rows, a.Simulator().Rows())
	return drill, nil
}

// restarted waits until an actor has been restarted once more and handles messages.
func (a *stage) restarted(ctx context.Context, path string, before uint64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, errors.New("not restarted after "+settleTimeout.String()))
	defer cancel()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for a.Restarts(path) == before || !a.Working(path) {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
