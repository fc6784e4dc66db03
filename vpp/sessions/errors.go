package sessions

import "errors"

// Errors of this package, to be tested with errors.Is.
var (
	// ErrNoStats means that the statistics cannot be had: there is no socket, nobody listens, or what is behind it has no NAT44-ED sessions.
	ErrNoStats = errors.New("no statistics of VPP")
	// ErrSilent means that VPP accepted a client of its statistics and said nothing, as it does while its main thread is busy.
	ErrSilent = errors.New("VPP does not hand out its statistics")
	// ErrNotUnderstood means that VPP answered something that this package cannot read.
	ErrNotUnderstood = errors.New("answer not understood")
)
