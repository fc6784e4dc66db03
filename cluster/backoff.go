package cluster

import (
	"context"
	"math/rand/v2"
	"time"
)

// errorFactor stretches the delays after errors: an etcd that does not answer is not asked as often as one that is merely busy.
const errorFactor = 16

// delays draws delays with full jitter: nodes that failed together do not try again together. It never gives up. It belongs to one
// goroutine.
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

// reset is called after a success.
func (b *delays) reset() { b.attempts = 0 }

// sleep waits, or returns false as soon as ctx ends.
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
