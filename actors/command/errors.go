package command

import (
	"errors"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Errors of commands, by what the caller can do about them.
var (
	// ErrState matches errors of commands that the state of VPP does not allow.
	ErrState = errors.New("not in this state of VPP")
	// ErrAway matches errors of commands that need something which is away.
	ErrAway = errors.New("not now")
	// ErrTooLate matches errors of commands whose deadline has passed.
	ErrTooLate = errors.New("not done in time")
)

// Errors that actors with commands share.
var (
	// ErrNotConnected answers commands and queries that need VPP while it is not connected.
	ErrNotConnected = errors.New("no connection to VPP, or its interfaces are not known yet")
	// ErrNotLoaded answers commands while the state that earlier ones have saved is still being
	// loaded.
	ErrNotLoaded = errors.New("saved state is still loading")
	// ErrInterrupted answers a command whose actor went down: its effects may or may not last.
	ErrInterrupted = errors.New("interrupted by a restart")
	// ErrNotReverted says that a command failed and that a part of it could not be rolled back.
	ErrNotReverted = errors.New("the rollback is not complete")
)

// refusal is an error that ErrState matches.
type refusal struct{ error }

// Is satisfies errors.Is.
func (refusal) Is(target error) bool { return target == ErrState }

// Refusal returns an error with this text that ErrState matches.
func Refusal(text string) error { return refusal{errors.New(text)} }

// Meaning returns ErrState, ErrAway or ErrTooLate for an error of a command; nil = any other error.
func Meaning(err error) error {
	for _, known := range []struct{ is, means error }{
		{ErrState, ErrState},
		{ErrNotLoaded, ErrAway},
		{ErrNotConnected, ErrAway},
		{link.ErrDown, ErrAway}, // also if the rollback failed for the same reason
		{link.ErrNotSent, ErrAway},
		{ErrInterrupted, ErrAway},
		{ErrTooLate, ErrTooLate},
	} {
		if errors.Is(err, known.is) {
			return known.means
		}
	}
	return nil
}
