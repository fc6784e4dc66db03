package command

import (
	"errors"
	"fmt"

	"github.com/troupe-vpp/troupe/actors/class"
)

// Step is one part of a command; C is what its functions need of their owner, for actors
// *runtime.Context. A step whose Do returns an error has done nothing. Neither function waits: one
// that has only begun something reports done = false, and its result is reported later with
// Transaction.Finish.
type Step[C any] struct {
	// Name says what the step does, for the journal: "attach interface tap3".
	Name string
	// Do carries the step out.
	Do func(c C) (done bool, err error)
	// Undo rolls it back, also when it was carried out in part only; nil = there is nothing to roll
	// back.
	Undo func(c C) (done bool, err error)
}

// Transaction carries out the steps of a command in their order: all of them or none. When one
// fails, those that were carried out are rolled back in the reverse order; one that failed after it
// had begun is rolled back too, because some of it may have happened. A failed rollback of a step
// does not keep the steps before it from being rolled back.
//
// It is plain data: it neither sends nor waits. Its owner calls Begin once, then Finish with the
// result of each step that is not done at once, and Abandon when waiting is over. A result that
// comes too late has an old ticket and is ignored.
type Transaction[C any] struct {
	steps    []Step[C]
	at       int    // the step under way
	back     bool   // steps are being rolled back
	ticket   uint64 // of the step under way; 0 = none is
	issued   uint64
	executed []string
	failure  error
	stuck    []error // steps that could not be rolled back
}

// NewTransaction returns a transaction that has not begun.
func NewTransaction[C any](steps ...Step[C]) *Transaction[C] { return &Transaction[C]{steps: steps} }

// Reversed returns steps in the order of a removal: what is added first is removed last.
func Reversed[C any](steps []Step[C]) []Step[C] {
	out := make([]Step[C], len(steps))
	for i, s := range steps {
		out[len(steps)-1-i] = s
	}
	return out
}

// Begin carries out steps until one has to be waited for.
func (t *Transaction[C]) Begin(c C) {
	for t.ticket == 0 && !t.ended() {
		t.advance(c)
	}
}

// Finish takes the result of the step that is waited for; one with another ticket is too late.
func (t *Transaction[C]) Finish(c C, ticket uint64, err error) {
	if ticket == 0 || ticket != t.ticket {
		return
	}
	t.ticket = 0
	t.conclude(err, true)
	t.Begin(c)
}

// Abandon ends the wait for the step under way as a failure.
func (t *Transaction[C]) Abandon(c C, err error) { t.Finish(c, t.ticket, err) }

// ended reports whether nothing is left to do in either direction.
func (t *Transaction[C]) ended() bool { return t.back && t.at < 0 || !t.back && t.at >= len(t.steps) }

// advance begins one step.
func (t *Transaction[C]) advance(c C) {
	s, fn := t.steps[t.at], t.steps[t.at].Do
	if t.back {
		fn = s.Undo
	}
	if fn == nil {
		t.conclude(nil, false)
		return
	}
	t.issued++
	t.ticket = t.issued
	if done, err := fn(c); done || err != nil {
		t.ticket = 0
		t.conclude(err, false)
	}
}

// conclude enters the result of a step; begun says that it was under way before it failed.
func (t *Transaction[C]) conclude(err error, begun bool) {
	s := t.steps[t.at]
	switch {
	case t.back && err != nil:
		t.stuck = append(t.stuck, fmt.Errorf("roll back %s: %w", s.Name, err))
		t.at--
	case t.back:
		if s.Undo != nil {
			t.executed = append(t.executed, "roll back "+s.Name)
		}
		t.at--
	case err != nil:
		t.failure, t.back = fmt.Errorf("%s: %w", s.Name, err), true
		if !begun {
			t.at--
		}
	default:
		t.executed = append(t.executed, s.Name)
		t.at++
	}
}

// err says why nothing was done; nil = everything was. It wraps class.ErrNotReverted when something
// was left behind.
func (t *Transaction[C]) err() error {
	if len(t.stuck) == 0 {
		return t.failure
	}
	return errors.Join(append([]error{t.failure, class.ErrNotReverted}, t.stuck...)...)
}

// planned names the steps in the order in which they are to be carried out.
func (t *Transaction[C]) planned() []string {
	names := make([]string, len(t.steps))
	for i, s := range t.steps {
		names[i] = s.Name
	}
	return names
}
