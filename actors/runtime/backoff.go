package runtime

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// Backoff is an exponential back-off. It is a pure function of the number of tries: the caller
// keeps the state.
type Backoff struct {
	// Min is the first delay, Max caps the growth. A Max below Min counts as Min.
	Min, Max time.Duration
	// Factor is the growth with each try; 0 = 2.
	Factor float64
	// Jitter is the part of the delay, 0 to 1, by which it is longer or shorter, so that what
	// failed together does not retry together. It also applies at Max.
	Jitter float64
}

// Delay is the pause after a number of failed tries in a row, from 1: Min multiplied tries-1 times,
// with random jitter.
func (b Backoff) Delay(tries int, r *rand.Rand) time.Duration { return b.at(tries, r.Float64()) }

// DelayFor is Delay with a jitter that depends only on the name of the retried object and the
// number of tries. A simulation repeats it.
func (b Backoff) DelayFor(name string, tries int) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendInt([]byte(name), int64(tries), 10)) // never fails
	// spreads the hashes of similar names over the whole range
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	return b.at(tries, r.Float64())
}

// at is the delay for a jitter of 0 (shortest) to 1 (longest).
func (b Backoff) at(tries int, jitter float64) time.Duration {
	d := max(b.Min, b.Max)
	if grown := float64(b.Min) * math.Pow(cmp.Or(b.Factor, 2), float64(max(tries, 1)-1)); grown < float64(d) {
		d = time.Duration(grown)
	}
	return d + time.Duration(b.Jitter*(2*jitter-1)*float64(d))
}

// retry is the back-off of one child of a supervisor. A cancelled timer of Context.After delivers
// nothing, even if its message waits in the mailbox already. So a cancelled back-off has no
// consequences (pitfall P4).
type retry struct {
	attempts int       // failures in a row
	since    time.Time // start of the present incarnation
	stop     func()    // nil = the child does not have to wait
}

// began notes that an incarnation starts.
func (r *retry) began(now time.Time) {
	r.cancel()
	r.since = now
}

// failed counts a failure and returns how long to wait.
func (r *retry) failed(p Policy, c *Context) time.Duration {
	// Only an incarnation that ran for a while has recovered: a start alone proves nothing.
	if !r.since.IsZero() && c.Now().Sub(r.since) >= p.HealthyAfter {
		r.attempts = 0
	}
	r.attempts++
	return p.backoff().Delay(r.attempts, c.Rand())
}

// wait makes the child wait until msg comes, or until the wait is cancelled.
func (r *retry) wait(c *Context, d time.Duration, msg any) {
	r.cancel()
	r.stop = c.After(d, msg)
}

// cancel ends the wait.
func (r *retry) cancel() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// waiting reports whether the child must not be started yet.
func (r *retry) waiting() bool { return r.stop != nil }
