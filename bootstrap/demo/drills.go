package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

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
