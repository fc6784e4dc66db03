package sessions

import (
	"errors"

	"github.com/troupe-vpp/troupe/vpp/stats"
)

// Errors of this package, for errors.Is.
var (
	// ErrNoStats means that the statistics are not available: there is no socket, no server behind
	// it, or no NAT44-ED entry in the segment.
	ErrNoStats = stats.ErrNone
	// ErrNoLimit means that the statistics have the sessions, and the limit of the table in a form
	// that this package cannot read: VPP 26.06 has it as a gauge, which GoVPP's client does not
	// know. VPP itself has to be asked for it (WithLimit).
	ErrNoLimit = errors.New("no limit of NAT44-ED that can be read in the statistics of VPP")
	// ErrSilent means that VPP accepted a client of its statistics and did not answer, as it does
	// while its main thread is busy.
	ErrSilent = stats.ErrSilent
	// ErrNotUnderstood means that this package cannot parse the answer of VPP.
	ErrNotUnderstood = errors.New("answer not understood")
)
