package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
)

// rowsDump is the message that reads our rows; one of it is one pass over VPP.
const rowsDump = "nat44_lb_static_mapping_dump"

// quietFor is how long the demo watches VPP after a fault: longer than every retry of the actors.
const quietFor = 1500 * time.Millisecond

// kill makes one actor fail and counts what VPP notices of it.
func kill(ctx context.Context, a *agent.Agent, what, path string) (Drill, error) {
	drill := Drill{Fault: what}
	before, restarts := a.Simulator().Counters(), a.Restarts(path)
	started := time.Now()
	if err := a.Kill(path); err != nil {
		return drill, fmt.Errorf("%s: %w", what, err)
	}
	for a.Restarts(path) == restarts {
		if time.Since(started) > settleTimeout {
			return drill, fmt.Errorf("%s: it was not restarted within %s", what, settleTimeout)
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := settle(ctx, a); err != nil {
		return drill, fmt.Errorf("%s: %w", what, err)
	}
	drill.Recovered = since(started)
	select {
	case <-ctx.Done():
		return drill, ctx.Err()
	case <-time.After(quietFor):
	}
	after := a.Simulator().Counters()
	drill.VPPWrites, drill.VPPReads = after.Mutating()-before.Mutating(), after.Of(rowsDump)-before.Of(rowsDump)
	drill.OK = drill.VPPWrites == 0 && drill.VPPReads <= 1
	return drill, nil
}
