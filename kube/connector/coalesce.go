package connector

import (
	"context"
	"time"
)

// The times of NewCoalescer.
const (
	// QuietPeriod is the time without a trigger before a pass begins.
	QuietPeriod = time.Second
	// LongestWait is the longest wait of a pass for the quiet period.
	LongestWait = 5 * time.Second
)

// Coalescer turns many triggers into few passes. Each trigger is followed by a pass that begins
// QuietPeriod after the last trigger of a burst, at most LongestWait after the first.
type Coalescer struct {
	pending chan struct{} // holds one trigger
}

// NewCoalescer returns a coalescer without a trigger.
func NewCoalescer() *Coalescer { return &Coalescer{pending: make(chan struct{}, 1)} }

// Trigger asks for a pass. It never blocks and may be called by any goroutine, also before Run.
func (c *Coalescer) Trigger() {
	select {
	case c.pending <- struct{}{}:
	default: // one is pending already
	}
}

// Run makes passes until ctx ends. Triggers during a pass are kept for the next one.
func (c *Coalescer) Run(ctx context.Context, pass func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.pending:
		}
		if !c.settle(ctx) {
			return
		}
		pass(ctx)
	}
}

// settle waits until no trigger has come for the quiet period. It reports false if ctx has ended.
func (c *Coalescer) settle(ctx context.Context) bool {
	latest := time.NewTimer(LongestWait)
	defer latest.Stop()
	quiet := time.NewTimer(QuietPeriod)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-c.pending:
			quiet.Reset(QuietPeriod)
		case <-quiet.C:
			return true
		case <-latest.C:
			return true
		}
	}
}
