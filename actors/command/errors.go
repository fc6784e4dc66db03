package command

import (
	"errors"

	"github.com/troupe-vpp/troupe/actors/class"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Errors of commands by what the caller can do about them.
var (
	// ErrState is matched by errors that say that the state of VPP does not allow a command.
	ErrState = errors.New("not in this state of VPP")
	// ErrAway is matched by errors that say that something is away that a command needs.
	ErrAway = errors.New("not now")
	// ErrTooLate is matched by errors of commands whose deadline has passed.
	ErrTooLate = class.ErrTooLate
)

// Errors that actors with commands share.
var (
	// ErrNotConnected answers what needs VPP while it is not connected.
	ErrNotConnected = errors.New("no connection to VPP, or its interfaces are not known yet")
	// ErrNotLoaded answers commands while the state that earlier ones have saved is still being
	// loaded.
	ErrNotLoaded = errors.New("saved state is still loading")
)

// refusal is an error that ErrState matches.
type refusal struct{ error }

// Is satisfies errors.Is.
func (refusal) Is(target error) bool { return target == ErrState }

// Refusal returns an error with this text that ErrState matches.
func Refusal(text string) error { return refusal{errors.New(text)} }

// Meaning says which of ErrState, ErrAway and ErrTooLate an error of a command is; nil = none of
// them.
func Meaning(err error) error {
	for _, known := range []struct{ is, means error }{
		{ErrState, ErrState},
		{ErrNotLoaded, ErrAway},
		{ErrNotConnected, ErrAway},
		{link.ErrDown, ErrAway}, // also where the rollback failed for the same reason
		{class.ErrInterrupted, ErrAway},
		{class.ErrTooLate, ErrTooLate},
	} {
		if errors.Is(err, known.is) {
			return known.means
		}
	}
	if k, _ := class.Of(err); k == class.Wait {
		return ErrAway
	}
	return nil
}
