package runtime

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
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

// DelayFor is Delay with a jitter that depends only on the name of what is retried and the number
// of tries, so that a simulation repeats it.
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

// withDefaults fills in what Policy leaves open.
func (p Policy) withDefaults(budget int, backoffMax time.Duration) Policy {
	p.Budget = cmp.Or(p.Budget, budget)
	p.Window = cmp.Or(p.Window, 10*time.Second)
	p.BackoffMin = cmp.Or(p.BackoffMin, time.Millisecond)
	p.BackoffMax = max(cmp.Or(p.BackoffMax, backoffMax), p.BackoffMin)
	p.Jitter = min(max(cmp.Or(p.Jitter, 0.2), 0), 1)
	p.HealthyAfter = cmp.Or(p.HealthyAfter, time.Minute)
	p.QuarantineAfter = cmp.Or(p.QuarantineAfter, 3)
	p.QuarantineWindow = cmp.Or(p.QuarantineWindow, 5*time.Second)
	p.QuarantineFor = cmp.Or(p.QuarantineFor, 30*time.Second)
	return p
}

// backoff is the part of the policy that Backoff computes.
func (p Policy) backoff() Backoff {
	return Backoff{Min: p.BackoffMin, Max: p.BackoffMax, Jitter: p.Jitter}
}

// retry is the back-off of one child of a supervisor. A cancelled timer of Context.After delivers
// nothing, not even what waits in the mailbox already, so a back-off that was cancelled has no
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

// window counts failures that are not older than a duration.
type window struct {
	at   []time.Time
	left int // so many at the front have left the window
}

// add counts a failure and returns how many lie in the window now. Success does not reset it: an
// actor that works for a moment and fails again would restart in a hot loop.
func (w *window) add(now time.Time, length time.Duration) int {
	w.at = append(w.at, now)
	for now.Sub(w.at[w.left]) >= length {
		w.left++
	}
	if w.left > len(w.at)/2 { // so that fewer are moved than removed
		w.at = append(w.at[:0], w.at[w.left:]...)
		w.left = 0
	}
	return w.count()
}

// publish shows a supervisor's failures in its ActorState.
func (w *window) publish(c *Context, strategy string, p Policy) {
	c.adapter.inc.box.supervises.Store(&supervision{strategy: strategy, budget: p.Budget, window: p.Window, failures: slices.Clone(w.at[w.left:])})
}

// supervision is how a supervisor treats failures of its children, and when they failed. It is
// never modified.
type supervision struct {
	strategy string
	budget   int
	window   time.Duration
	failures []time.Time
}

// left is how many more failures are tolerated now; -1 = any number.
func (s *supervision) left(now time.Time) int {
	if s.budget < 0 {
		return -1
	}
	left := s.budget
	for _, at := range s.failures {
		if now.Sub(at) < s.window {
			left--
		}
	}
	return max(left, 0)
}

// count is how many failures lay in the window when the last one was added.
func (w *window) count() int { return len(w.at) - w.left }
