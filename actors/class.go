package actors

import (
	"context"
	"errors"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// class says what an error asks for. There is one table of them, so that nobody decides it by himself.
type class uint8

const (
	// classNone: there is no error.
	classNone class = iota
	// classWait: nothing has happened, because something outside is away. It will be told when that is back; until then there is nothing to do.
	classWait
	// classRetry: this one object has failed. It is tried again after a delay; nobody else is concerned.
	classRetry
	// classAbort: the same again would end the same way. Nothing is done until something else is wanted.
	classAbort
	// classResync: what is known is not what is. It has to be read again, as far as its reach goes.
	classResync
	// classActor: the actor cannot go on and its supervisor has to decide.
	classActor
	// classProcess: the process cannot go on.
	classProcess
)

// String is the word for metrics and the journal.
func (k class) String() string {
	return [...]string{"none", "wait", "retry", "abort", "resync", "fatal-actor", "fatal-process"}[k]
}

// classified is an error whose class somebody has decided who knows better than the table.
type classified struct {
	class class
	reach messages.Reach
	err   error
}

// Error is the text of the error.
func (e *classified) Error() string { return e.err.Error() }

// Unwrap returns the error.
func (e *classified) Unwrap() error { return e.err }

// resyncNeeded wraps an error after which everything within reach has to be read again.
func resyncNeeded(reach messages.Reach, err error) error { return &classified{classResync, reach, err} }

// fatal wraps an error after which an actor (classActor) or the process (classProcess) cannot go on.
func fatal(k class, err error) error { return &classified{k, messages.Reach_REACH_NONE, err} }

// classes is the table. The first line that matches decides: an answer that did not come weighs more than what VPP said before.
func classes() []struct {
	is    error
	class class
	reach messages.Reach
} {
	const none, key, vpp = messages.Reach_REACH_NONE, messages.Reach_REACH_OBJECT, messages.Reach_REACH_DOWNSTREAM
	return []struct {
		is    error
		class class
		reach messages.Reach
	}{
		{runtime.ErrShutdown, classProcess, none},
		{runtime.ErrBudget, classActor, none},
		{errNotReverted, classResync, vpp},
		{link.ErrUnknown, classResync, vpp},
		{link.ErrNotSent, classWait, none},
		{link.ErrDown, classWait, none},
		{link.ErrRefused, classAbort, key},
		{link.ErrUnsupported, classAbort, key},
		{nat44.ErrDisabled, classResync, vpp},
		{nat44.ErrExists, classResync, key},
		{nat44.ErrVanished, classResync, key},
		{nat44.ErrTooFew, classResync, key},
		{nat44.ErrUnsafe, classAbort, key},
		{errTooLate, classAbort, none},
		{errInterrupted, classAbort, none},
		{context.DeadlineExceeded, classAbort, none},
		{context.Canceled, classAbort, none},
	}
}

// classify says what an error asks for, and how much is concerned. What is not in the table is the failure of one object.
func classify(err error) (class, messages.Reach) {
	if err == nil {
		return classNone, messages.Reach_REACH_NONE
	}
	var own *classified
	if errors.As(err, &own) {
		return own.class, own.reach
	}
	for _, line := range classes() {
		if errors.Is(err, line.is) {
			return line.class, line.reach
		}
	}
	return classRetry, messages.Reach_REACH_OBJECT
}
