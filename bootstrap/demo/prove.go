package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/messages"
)

// settleTimeout is how long the demo waits for everything to be in sync before it says that it is not.
const settleTimeout = 20 * time.Second

// favourite is the service whose actor is killed, where the cluster has it.
const favourite = "shop/web"

// prove collects the evidence: what VPP does for every service, then what it notices of faults. After each it is watched for quiet.
func prove(ctx context.Context, a *agent.Agent, started time.Time, quiet time.Duration) (*Report, error) {
	report, statuses, err := look(ctx, a)
	if err != nil {
		return nil, err
	}
	report.InSyncAfter = report.settled.Sub(started).Round(time.Millisecond).String()
	for _, fault := range faults(statuses) {
		drill, err := kill(ctx, a, fault.what, fault.path, quiet)
		if err != nil {
			return nil, err
		}
		report.Drills = append(report.Drills, drill)
	}
	report.judge()
	return report, nil
}

// look waits until the agent is in sync and compares what it says with what VPP has and does.
func look(ctx context.Context, a *agent.Agent) (*Report, []*messages.ServiceStatus, error) {
	statuses, err := settle(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	report := &Report{settled: time.Now(), Services: len(statuses), Rows: rowsInVPP(a), Probes: []Probe{}, Drills: []Drill{}}
	for _, s := range statuses {
		row := serviceRow(s)
		report.Table = append(report.Table, row)
		if row.State != statePending && row.State != stateFailed {
			report.InSync++
		}
	}
	report.Probes = newProber(a, statuses).all()
	return report, statuses, nil
}

// rowsInVPP counts the rows that VPP itself has, whatever the agent believes.
func rowsInVPP(a *agent.Agent) int {
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

// faults are the actors whose death must cost VPP nothing: one of each kind that holds a state.
func faults(statuses []*messages.ServiceStatus) []fault {
	key := ""
	for _, s := range statuses {
		if s.GetKey() == favourite || key == "" && len(s.GetView().GetFrontends()) > 0 {
			key = s.GetKey()
		}
	}
	out := []fault{{"renderer nat44 killed", actors.PathRenderer("nat44")}, {"registry killed", actors.PathRegistry}}
	if key != "" {
		out = slices.Insert(out, 0, fault{"service actor " + key + " killed", actors.PathService(key)})
	}
	return out
}

// settle waits until the agent says that VPP holds what it should and every service of it agrees.
func settle(ctx context.Context, a *agent.Agent) ([]*messages.ServiceStatus, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, errUnsettled)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		statuses, err := a.Statuses(ctx)
		if err == nil && a.Backend().Readiness().Ready && settled(statuses) {
			return statuses, nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, unsettled(context.Cause(ctx), a, statuses)
		}
	}
}

// settled reports whether nothing is on its way. A service that has failed is settled, too: the report says so.
func settled(statuses []*messages.ServiceStatus) bool {
	for _, s := range statuses {
		if serviceRow(s).State == statePending {
			return false
		}
	}
	return true
}

// unsettled explains why the agent is not in sync.
func unsettled(cause error, a *agent.Agent, statuses []*messages.ServiceStatus) error {
	var reasons []string
	for _, p := range a.Backend().Readiness().Parts {
		if !p.OK {
			reasons = append(reasons, p.Name+": "+p.Reason)
		}
	}
	for _, s := range statuses {
		if serviceRow(s).State == statePending {
			reasons = append(reasons, s.GetKey()+" is pending")
		}
	}
	return fmt.Errorf("%w: %s", cause, strings.Join(reasons, "; "))
}
