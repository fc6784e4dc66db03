package events

import "time"

// bucket is a token bucket whose clock is an argument. client-go's flowcontrol cannot say how long to wait for a token.
type bucket struct {
	tokens float64
	last   time.Time // when tokens was right
}

// rate is how a bucket fills.
type rate struct {
	burst float64       // capacity
	every time.Duration // time for one token
}

// full returns a bucket with all of its tokens.
func (r rate) full(now time.Time) *bucket { return &bucket{tokens: r.burst, last: now} }

// fill adds what has come since the last time. A clock that goes back adds nothing.
func (b *bucket) fill(r rate, now time.Time) {
	if passed := now.Sub(b.last); passed > 0 {
		b.tokens = min(r.burst, b.tokens+float64(passed)/float64(r.every))
	}
	b.last = now
}

// wait returns how long it takes until there is a token; 0 = there is one.
func (b *bucket) wait(r rate, now time.Time) time.Duration {
	b.fill(r, now)
	if b.tokens >= 1 {
		return 0
	}
	// Rounded up: who comes back after this time must find a token, or would be sent away for nothing.
	return time.Duration((1-b.tokens)*float64(r.every)) + time.Microsecond
}

// take uses up a token if there is one.
func (b *bucket) take(r rate, now time.Time) bool {
	if b.wait(r, now) > 0 {
		return false
	}
	b.tokens--
	return true
}
