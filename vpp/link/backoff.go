package link

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff gives the pauses between attempts: doubling from min to max, each shortened by a random part of up to a half, so that the
// agents of a cluster do not move in step.
type backoff struct {
	min, max time.Duration
	current  time.Duration
}

// next returns the next pause.
func (b *backoff) next() time.Duration {
	b.current = min(max(2*b.current, b.min), b.max)
	return b.current - rand.N(b.current/2+1)
}

// reset begins again with min.
func (b *backoff) reset() {
	b.current = 0
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
