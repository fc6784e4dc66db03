package link

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// newBackoff returns pauses that double from least to most, each shortened by a random part of up
// to a half, so that the agents of a cluster do not connect in step. The library only lengthens a
// pause, so it gets half of each bound.
func newBackoff(least, most time.Duration) wait.Backoff {
	return wait.Backoff{Duration: least / 2, Factor: 2, Jitter: 1, Steps: 32, Cap: most / 2}
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
