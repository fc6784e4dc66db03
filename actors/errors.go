package actors

import "errors"

// errContested is what a row shows whose address somebody else has; RenderAck.conflicts says who.
var errContested = errors.New("the address is in use by somebody else")

// errNotConnected answers questions about VPP while there is none.
var errNotConnected = errors.New("no connection to VPP, or its interfaces are not known yet")

// Errors of commands.
var (
	// errTooLate ends a command whose deadline has passed.
	errTooLate = errors.New("not done in time")
	// errInterrupted answers a command whose actor went down; what it has done may or may not last.
	errInterrupted = errors.New("interrupted by a restart")
	// errNotReverted says that a command failed and that something of it could not be taken back.
	errNotReverted = errors.New("not everything could be taken back")
)
