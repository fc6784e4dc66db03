package runtime

import (
	"math/rand/v2"
	"time"
)

// retry is the back-off of one child. The timer itself is a message to the supervisor that carries the token; one that is not the latest, or
// that comes after the back-off was called off, means nothing (pitfall P4).
type retry struct {
	attempts int       // failures in a row
	since    time.Time // start of the present incarnation
	token    uint64    // of the latest timer
	waiting  bool      // the child must not be started
}

// began notes that an incarnation starts.
func (r *retry) began(now time.Time) { r.since = now }

// failed begins a back-off and returns its length.
func (r *retry) failed(p Policy, now time.Time, random *rand.Rand) time.Duration {
	if !r.since.IsZero() && now.Sub(r.since) >= p.HealthyAfter {
		r.attempts = 0
	}
	r.attempts++
	r.wait()
	return p.delay(r.attempts, random)
}

// wait makes the next token.
func (r *retry) wait() {
	r.token++
	r.waiting = true
}

// over ends the wait if the token is of its timer.
func (r *retry) over(token uint64) bool {
	if !r.waiting || r.token != token {
		return false
	}
	r.waiting = false
	return true
}
