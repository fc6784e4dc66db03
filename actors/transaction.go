package actors

import (
	"errors"
	"fmt"
)

// step is one part of a command; C is what its functions need of their owner, for actors *runtime.Context. A step whose do returns an error
// has done nothing. Neither function waits: one that has only begun something reports done = false, and its result is reported later with
// transaction.finish.
type step[C any] struct {
	// name says what the step does, for the journal: "attach interface tap3".
	name string
	// do carries the step out.
	do func(c C) (done bool, err error)
	// undo takes it back, also when it was carried out in part only; nil = there is nothing to take back.
	undo func(c C) (done bool, err error)
}

// transaction carries out the steps of a command in their order: all of them or none. When one fails, those that were carried out are taken
// back in the reverse order; one that failed after it had begun is taken back too, because some of it may have happened. A failure to take a
// step back does not keep the steps before it from being taken back.
//
// It is plain data: it neither sends nor waits. Its owner calls begin once, then finish with the result of each step that is not done at once,
// and abandon when waiting is over. A result that comes too late has an old ticket and counts for nothing.
type transaction[C any] struct {
	steps    []step[C]
	at       int    // the step under way
	back     bool   // steps are being taken back
	ticket   uint64 // of the step under way; 0 = none is
	issued   uint64
	executed []string
	failure  error
	stuck    []error // steps that could not be taken back
}

// newTransaction returns a transaction that has not begun.
func newTransaction[C any](steps ...step[C]) *transaction[C] { return &transaction[C]{steps: steps} }

// reversed returns steps in the order of a removal: what is added first is removed last.
func reversed[C any](steps []step[C]) []step[C] {
	out := make([]step[C], len(steps))
	for i, s := range steps {
		out[len(steps)-1-i] = s
	}
	return out
}

// begin carries out steps until one has to be waited for.
func (t *transaction[C]) begin(c C) {
	for t.ticket == 0 && !t.ended() {
		t.advance(c)
	}
}

// finish takes the result of the step that is waited for; one with another ticket is overtaken.
func (t *transaction[C]) finish(c C, ticket uint64, err error) {
	if ticket == 0 || ticket != t.ticket {
		return
	}
	t.ticket = 0
	t.conclude(err, true)
	t.begin(c)
}

// abandon ends the wait for the step under way as a failure.
func (t *transaction[C]) abandon(c C, err error) { t.finish(c, t.ticket, err) }

// ended reports whether nothing is left to do, forth or back.
func (t *transaction[C]) ended() bool { return t.back && t.at < 0 || !t.back && t.at >= len(t.steps) }

// advance begins one step.
func (t *transaction[C]) advance(c C) {
	s, fn := t.steps[t.at], t.steps[t.at].do
	if t.back {
		fn = s.undo
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

// conclude books the result of a step; begun says that it was under way before it failed.
func (t *transaction[C]) conclude(err error, begun bool) {
	s := t.steps[t.at]
	switch {
	case t.back && err != nil:
		t.stuck = append(t.stuck, fmt.Errorf("take back %s: %w", s.name, err))
		t.at--
	case t.back:
		if s.undo != nil {
			t.executed = append(t.executed, "take back "+s.name)
		}
		t.at--
	case err != nil:
		t.failure, t.back = fmt.Errorf("%s: %w", s.name, err), true
		if !begun {
			t.at--
		}
	default:
		t.executed = append(t.executed, s.name)
		t.at++
	}
}

// err says why nothing was done; nil = everything was. It wraps errNotReverted when something was left behind.
func (t *transaction[C]) err() error {
	if len(t.stuck) == 0 {
		return t.failure
	}
	return errors.Join(append([]error{t.failure, errNotReverted}, t.stuck...)...)
}

// planned names the steps in the order in which they are to be carried out.
func (t *transaction[C]) planned() []string {
	names := make([]string, len(t.steps))
	for i, s := range t.steps {
		names[i] = s.name
	}
	return names
}
