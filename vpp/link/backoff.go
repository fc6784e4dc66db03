package link

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// newBackoff returns pauses that double from least to most, each shortened by a random part of up to a half, so that the agents of a cluster do not
// connect in step. The library randomizes in both directions, so it gets the middle of each range.
func newBackoff(least, most time.Duration) *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: least * 3 / 4, MaxInterval: most * 3 / 4, Multiplier: 2, RandomizationFactor: 1.0 / 3,
	}
}

// sleep waits, at most until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
