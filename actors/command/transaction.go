package command

import (
	"errors"
	"fmt"
)

// Operation is one part of a command; C is the context of its functions, for actors
// *runtime.Context. If Do returns an error, the operation has changed nothing. Neither function
// waits: a function that has only begun its work returns done = false, and Transaction.Finish
// reports the result later.
type Operation[C any] struct {
	// Name says what the operation does, for the journal: "attach interface tap3".
	Name string
	// Do carries the operation out.
	Do func(c C) (done bool, err error)
	// Undo rolls the operation back, also if it was carried out in part only; nil = there is
	// nothing to roll back.
	Undo func(c C) (done bool, err error)
}

// Transaction carries out the operations of a command in their order: all of them or none. When one
// fails, the operations before it are rolled back in the reverse order. An operation that failed
// after it had begun is rolled back too, because it may have taken effect in part. A failed
// rollback does not stop the rollback of the operations before it.
//
// It is plain data: it neither sends nor waits. Its owner calls Begin once, then Finish with the
// result of each operation that is not done at once, and Abandon at the deadline. A late result has
// an old ticket and is ignored.
type Transaction[C any] struct {
	operations []Operation[C]
	at         int    // the operation under way
	back       bool   // operations are being rolled back
	ticket     uint64 // of the operation under way; 0 = none is
	issued     uint64
	executed   []string
	failure    error
	stuck      []error // operations that could not be rolled back
}

// NewTransaction returns a transaction that has not begun.
func NewTransaction[C any](operations ...Operation[C]) *Transaction[C] {
	return &Transaction[C]{operations: operations}
}

// Begin carries out operations until one is not done at once.
func (t *Transaction[C]) Begin(c C) {
	for t.ticket == 0 && !t.ended() {
		t.advance(c)
	}
}

// Finish takes the result of the operation under way; a result with another ticket is ignored.
func (t *Transaction[C]) Finish(c C, ticket uint64, err error) {
	if ticket == 0 || ticket != t.ticket {
		return
	}
	t.ticket = 0
	t.conclude(err, true)
	t.Begin(c)
}

// Abandon ends the wait for the operation under way as a failure.
func (t *Transaction[C]) Abandon(c C, err error) { t.Finish(c, t.ticket, err) }

// ended reports whether nothing is left to do in either direction.
func (t *Transaction[C]) ended() bool {
	return t.back && t.at < 0 || !t.back && t.at >= len(t.operations)
}

// advance begins one operation.
func (t *Transaction[C]) advance(c C) {
	s, fn := t.operations[t.at], t.operations[t.at].Do
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

// conclude enters the result of an operation; begun says that it was under way before it failed.
func (t *Transaction[C]) conclude(err error, begun bool) {
	s := t.operations[t.at]
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

// err is why the transaction failed; nil = success. It wraps ErrNotReverted if the rollback is not
// complete.
func (t *Transaction[C]) err() error {
	if len(t.stuck) == 0 {
		return t.failure
	}
	return errors.Join(append([]error{t.failure, ErrNotReverted}, t.stuck...)...)
}

// planned names the operations in the order in which they are to be carried out.
func (t *Transaction[C]) planned() []string {
	names := make([]string, len(t.operations))
	for i, s := range t.operations {
		names[i] = s.Name
	}
	return names
}
