package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// errUnsettled says that the agent was not in sync in time.
var errUnsettled = errors.New("not in sync after " + settleTimeout.String())

// quietFor is how long the demo watches VPP after a fault: long enough for the actors to repeat themselves.
const quietFor = 1500 * time.Millisecond

// kill makes one actor fail and counts what VPP notices of it until everything has been in sync again for a while.
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
	if _, err := a.settle(ctx); err != nil {
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

// restarted waits until an actor has been restarted once more and works again.
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
