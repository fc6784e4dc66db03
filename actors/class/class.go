// Package class says what an error asks for: one table for all actors, so that the same error has
// the same consequence everywhere. It is pure.
//
// The table knows no renderer. What VPP's answer means for an object is said by the package that
// sent the request, by wrapping one of the sentinels of vpp/link.
package class

import (
	"context"
	"errors"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Class is what an error asks for.
type Class uint8

const (
	// None: there is no error.
	None Class = iota
	// Wait: nothing has happened, because something outside is away. Its return is reported; until
	// then there is nothing to do.
	Wait
	// Retry: this one object has failed. It is tried again after a delay; other objects are not
	// concerned.
	Retry
	// Abort: the same request would end the same way. Nothing is done until something else is
	// wanted.
	Abort
	// Resync: what is believed is not what is. It has to be read again, as far as its reach goes.
	Resync
	// Actor: the actor cannot go on and its supervisor has to decide.
	Actor
	// Process: the process cannot go on.
	Process
)

// String is the word for metrics and the journal.
func (k Class) String() string {
	return [...]string{"none", "wait", "retry", "abort", "resync", "fatal-actor", "fatal-process"}[k]
}

// ErrNotReverted says that a command failed and that a part of it could not be rolled back.
var ErrNotReverted = errors.New("the rollback is not complete")

// Errors of commands that the table has to know.
var (
	// ErrTooLate ends a command whose deadline has passed.
	ErrTooLate = errors.New("not done in time")
	// ErrInterrupted answers a command whose actor went down; what it has done may or may not last.
	ErrInterrupted = errors.New("interrupted by a restart")
)

// classified is an error whose class its origin knows better than the table.
type classified struct {
	class Class
	err   error
}

// Error is the text of the error.
func (e *classified) Error() string { return e.err.Error() }

// Unwrap returns the error.
func (e *classified) Unwrap() error { return e.err }

// Fatal wraps an error after which an actor (Actor) or the process (Process) cannot go on.
func Fatal(k Class, err error) error { return &classified{k, err} }

// line is one line of the table.
type line struct {
	is    error
	class Class
	reach messages.Reach
}

// table is ordered: the first line that matches decides, because a missing answer weighs more than
// what VPP said before.
func table() []line {
	const none, key, vpp = messages.Reach_REACH_NONE, messages.Reach_REACH_OBJECT, messages.Reach_REACH_DOWNSTREAM
	return []line{
		{runtime.ErrShutdown, Process, none},
		{runtime.ErrBudget, Actor, none},
		{ErrNotReverted, Resync, vpp},
		{link.ErrUnknown, Resync, vpp},
		{link.ErrNotSent, Wait, none},
		{link.ErrDown, Wait, none},
		{link.ErrRefused, Abort, key},
		{link.ErrUnsupported, Abort, key},
		{link.ErrDisabled, Resync, vpp},
		{link.ErrStale, Resync, key},
		{link.ErrUnsafe, Abort, key},
		{ErrTooLate, Abort, none},
		{ErrInterrupted, Abort, none},
		{context.DeadlineExceeded, Abort, none},
		{context.Canceled, Abort, none},
	}
}

// Of says what an error asks for, and how much is concerned. What is not in the table is the
// failure of one object.
func Of(err error) (Class, messages.Reach) {
	if err == nil {
		return None, messages.Reach_REACH_NONE
	}
	var own *classified
	if errors.As(err, &own) {
		return own.class, messages.Reach_REACH_NONE
	}
	for _, l := range table() {
		if errors.Is(err, l.is) {
			return l.class, l.reach
		}
	}
	return Retry, messages.Reach_REACH_OBJECT
}

// Lost reports whether an error only says that the connection to VPP has ended: the link reports
// the next one.
func Lost(err error) bool {
	k, _ := Of(err)
	return k == Wait || errors.Is(err, link.ErrUnknown)
}
