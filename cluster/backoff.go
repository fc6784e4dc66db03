package cluster

import (
	"context"
	"math/rand/v2"
	"time"
)

// errorFactor makes the back-off after errors longer than after conflicts, because a store that
// does not answer needs longer pauses.
const errorFactor = 16

// delays is an exponential back-off with full jitter, so that nodes that failed together do not
// retry together. It never gives up. Its source of randomness is injected, so that tests in virtual
// time are deterministic. It belongs to one goroutine.
type delays struct {
	min, max time.Duration
	rand     *rand.Rand
	attempts int
}

// next returns the delay before the next attempt.
func (b *delays) next() time.Duration {
	limit := b.max
	if shift := min(b.attempts, 20); b.min<<shift < b.max {
		limit = b.min << shift
	}
	b.attempts++
	return time.Duration(b.rand.Int64N(int64(limit) + 1))
}

// reset starts again with the shortest delay, after a success.
func (b *delays) reset() { b.attempts = 0 }

// sleep waits for d, or returns false when ctx ends earlier.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
