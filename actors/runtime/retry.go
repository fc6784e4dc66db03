package runtime

import (
	"time"
)

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
