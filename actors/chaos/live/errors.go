package live

import "errors"

// Why a fault is refused.
var (
	// ErrInvalid means that the fault or the plan cannot be; see FieldError.
	ErrInvalid = errors.New("invalid")
	// ErrNoActor means that there is no such actor.
	ErrNoActor = errors.New("no such actor")
	// ErrExempt means that this never happens to that actor.
	ErrExempt = errors.New("exempt")
	// ErrLimit means that it would be too much at once, or too fast.
	ErrLimit = errors.New("limit")
	// ErrBusy means that a run is under way, or that the actor suffers from the same already.
	ErrBusy = errors.New("busy")
	// ErrClosed means that the agent stops.
	ErrClosed = errors.New("closed")
	// errInjected is in the text of every failure that this package has caused.
	errInjected = errors.New("injected by chaos")
)
