package runtime

import (
	"math/rand/v2"
	"time"
)

// withDefaults fills in what Policy leaves open.
func (p Policy) withDefaults(budget int, backoffMax time.Duration) Policy {
	p.Budget = fallback(p.Budget, budget)
	p.Window = fallback(p.Window, 10*time.Second)
	p.BackoffMin = fallback(p.BackoffMin, time.Millisecond)
	p.BackoffMax = max(fallback(p.BackoffMax, backoffMax), p.BackoffMin)
	p.Jitter = min(max(fallback(p.Jitter, 0.2), 0), 1)
	p.HealthyAfter = fallback(p.HealthyAfter, time.Minute)
	p.QuarantineAfter = fallback(p.QuarantineAfter, 3)
	p.QuarantineWindow = fallback(p.QuarantineWindow, 5*time.Second)
	p.QuarantineFor = fallback(p.QuarantineFor, 30*time.Second)
	return p
}

func fallback[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// delay is the pause before the restart that follows the n-th failure in a row, n from 1: BackoffMin doubled n-1 times, at most BackoffMax,
// a random part of Jitter longer or shorter.
func (p Policy) delay(n int, r *rand.Rand) time.Duration {
	d := p.BackoffMax
	if shift := n - 1; shift < 62 && p.BackoffMin <= p.BackoffMax>>shift {
		d = p.BackoffMin << shift
	}
	return d + time.Duration(p.Jitter*(2*r.Float64()-1)*float64(d))
}

// window counts failures that are not older than a duration.
type window struct {
	at   []time.Time
	left int // so many at the front have left the window
}

// add counts a failure and returns how many lie in the window now. It is not reset by success: an actor that works for a moment and dies
// again would restart in a hot loop.
func (w *window) add(now time.Time, length time.Duration) int {
	w.at = append(w.at, now)
	for now.Sub(w.at[w.left]) >= length {
		w.left++
	}
	if w.left > len(w.at)/2 { // seldom enough to cost nothing
		w.at = append(w.at[:0], w.at[w.left:]...)
		w.left = 0
	}
	return w.count()
}

// count is how many failures lay in the window when the last one was added.
func (w *window) count() int { return len(w.at) - w.left }

// retry is the back-off of one child: the message that ends it, and how long the next one will be. A cancelled timer of Context.After delivers
// nothing, not even what waits in the mailbox already, so that a back-off that was called off has no consequences (pitfall P4).
type retry struct {
	attempts int       // failures in a row
	since    time.Time // start of the present incarnation
	cancel   func()    // nil = the child does not have to wait
}

// began notes that an incarnation starts.
func (r *retry) began(now time.Time) {
	r.callOff()
	r.since = now
}

// failed counts a failure and returns how long to wait.
func (r *retry) failed(p Policy, c *Context) time.Duration {
	if !r.since.IsZero() && c.Now().Sub(r.since) >= p.HealthyAfter {
		r.attempts = 0
	}
	r.attempts++
	return p.delay(r.attempts, c.Rand())
}

// wait makes the child wait until msg comes, or until the wait is called off.
func (r *retry) wait(c *Context, d time.Duration, msg any) {
	r.callOff()
	r.cancel = c.After(d, msg)
}

// callOff ends the wait.
func (r *retry) callOff() {
	if r.cancel != nil {
		r.cancel()
		r.cancel = nil
	}
}

// waiting reports whether the child must not be started yet.
func (r *retry) waiting() bool { return r.cancel != nil }
