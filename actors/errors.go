package actors

import (
	"errors"

	"github.com/troupe-vpp/troupe/vpp/link"
)

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
	// errExternalRefused says that entries of external configuration cannot be had.
	errExternalRefused = errors.New("refused")
	// errReserved says that a layer is the agent's own.
	errReserved = errors.New("snat is the layer of dynamic SNAT, which the configuration of the agent decides")
	// errNotReverted says that a command failed and that something of it could not be taken back.
	errNotReverted = errors.New("not everything could be taken back")
)

// errNotLoaded answers commands while what earlier ones have left is still being read.
var errNotLoaded = errors.New("what was told before is being loaded")

// Errors of attaching pods.
var (
	errNoInterface   = errors.New("VPP has no such interface")
	errInterfaceDown = errors.New("it is down in VPP")
	errNotForPods    = errors.New("it cannot be that of a pod: packets are not routed from it")
	errRolesRefused  = errors.New("VPP refused the roles")
)

// What errors of commands mean for whoever asked.
var (
	// ErrState is matched by errors that say that the state of VPP does not allow a command.
	ErrState = errors.New("not in this state of VPP")
	// ErrAway is matched by errors that say that somebody is away who is needed for a command.
	ErrAway = errors.New("not now")
	// ErrTooLate is matched by errors of commands whose deadline has passed.
	ErrTooLate = errTooLate
)

// Meaning says which of ErrState, ErrAway and ErrTooLate an error of a command is; nil = none of them.
func Meaning(err error) error {
	for _, known := range []struct{ is, means error }{
		{errNoInterface, ErrState},
		{errInterfaceDown, ErrState},
		{errNotForPods, ErrState},
		{errExternalRefused, ErrState},
		{errReserved, ErrState},
		{errNotLoaded, ErrAway},
		{errNotConnected, ErrAway},
		{link.ErrDown, ErrAway}, // also where taking back what had been told failed for the same reason
		{errInterrupted, ErrAway},
		{errTooLate, ErrTooLate},
	} {
		if errors.Is(err, known.is) {
			return known.means
		}
	}
	if k, _ := classify(err); k == classWait {
		return ErrAway
	}
	return nil
}
