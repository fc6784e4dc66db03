package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
)

// errUnsettled says that the agent was not in sync in time.
var errUnsettled = errors.New("not in sync after " + settleTimeout.String())

// rowsDump is the message that reads our rows; one of it is one pass over VPP.
const rowsDump = "nat44_lb_static_mapping_dump"

// quietFor is how long the demo watches VPP after a fault: long enough for the actors to repeat themselves.
const quietFor = 1500 * time.Millisecond

// kill makes one actor fail and counts what VPP notices of it until everything has been in sync again for quiet.
func kill(ctx context.Context, a *agent.Agent, what, path string, quiet time.Duration) (Drill, error) {
	drill := Drill{Fault: what}
	before, rows, restarts := a.Simulator().Counters(), a.Simulator().Rows(), a.Restarts(path)
	started := time.Now()
	if err := a.Kill(path); err != nil {
		return drill, fmt.Errorf("%s: %w", what, err)
	}
	if err := restarted(ctx, a, path, restarts); err != nil {
		return drill, fmt.Errorf("%s: %w", what, err)
	}
	if _, err := settle(ctx, a); err != nil {
		return drill, fmt.Errorf("%s: %w", what, err)
	}
	drill.Recovered = time.Since(started).Round(time.Millisecond).String()
	select {
	case <-ctx.Done():
		return drill, ctx.Err()
	case <-time.After(quiet):
	}
	after := a.Simulator().Counters()
	drill.VPPWrites, drill.VPPReads = after.Mutating()-before.Mutating(), after.Of(rowsDump)-before.Of(rowsDump)
	drill.OK = drill.VPPWrites == 0 && drill.VPPReads <= 1 && slices.Equal(rows, a.Simulator().Rows())
	return drill, nil
}

// restarted waits until an actor has been restarted once more.
func restarted(ctx context.Context, a *agent.Agent, path string, before uint64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, errors.New("not restarted after "+settleTimeout.String()))
	defer cancel()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for a.Restarts(path) == before {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
