package live

import "errors"

// Reasons why Live refuses a fault.
var (
	// ErrInvalid means that a field of the fault or the plan is invalid; see FieldError.
	ErrInvalid = errors.New("invalid")
	// ErrNoActor means that the actor does not exist.
	ErrNoActor = errors.New("no such actor")
	// ErrExempt means that the actor is exempt from the fault.
	ErrExempt = errors.New("exempt")
	// ErrLimit means that too many faults are active, or were injected in a short time.
	ErrLimit = errors.New("limit")
	// ErrBusy means that a run is active, or a fault of the same kind at the same actor.
	ErrBusy = errors.New("busy")
	// ErrClosed means that the agent is stopping.
	ErrClosed = errors.New("closed")
	// errInjected marks every injected failure, to tell it from a real one in the log and the API.
	errInjected = errors.New("injected by chaos")
)
