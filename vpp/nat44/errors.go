package nat44

import (
	"errors"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Errors of this package, for errors.Is. Apply's errors classify the return value of VPP for the
// operation.
var (
	// ErrExists means that VPP holds something under this key already (-81). It may be the
	// wanted mapping or a mapping of another owner: read back.
	ErrExists = link.Classified("exists already", link.ErrStale)
	// ErrVanished means that the row to be changed is not in VPP (-6): read back.
	ErrVanished = link.Classified("row is not there", link.ErrStale)
	// ErrDisabled means that the NAT44 plugin is not enabled (-126): VPP has restarted, or an
	// operator disabled it.
	ErrDisabled = link.Classified("nat44 plugin is not enabled", link.ErrDisabled)
	// ErrTooFew means that VPP refused to take a local from a row with two entries (-1): the
	// row differs from the State.
	ErrTooFew = link.Classified("row would have fewer than two entries", link.ErrStale)
	// ErrForeign means that the key belongs to a mapping of another kind, which has another
	// owner (-7).
	ErrForeign = errors.New("held by a mapping of another kind")
	// ErrNoInterface means that VPP does not know the interface any more (-2).
	ErrNoInterface = errors.New("no such interface")
	// ErrOutput means that the interface is an output interface of NAT and can have no other
	// role (-81).
	ErrOutput = errors.New("interface is an output interface")
)

// Return values of VPP 25.10 (vnet/error.h) that have a meaning for our operations.
const (
	retUnspecified    = -1
	retNoInterface    = -2
	retNoSuchEntry    = -6
	retInvalidValue   = -7
	retValueExist     = -81
	retUnsupported    = -126
	retAlreadyEnabled = -170
)

// cause is the key of the table in meaningOf: the same return value means different things for
// different operations.
type cause struct {
	verb   Verb
	retval int32
}

// meaningOf classifies a return value other than 0: nil where the goal of the operation is reached
// nevertheless, batch.ErrRejected where the value has no special meaning. unknown is set where the
// answer contradicts the State.
func meaningOf(verb Verb, retval int32) (err error, unknown bool) {
	if retval == retUnsupported {
		return ErrDisabled, true
	}
	if verb == SetShare || verb == Mend || verb == Grow { // entries of a row, like backends
		verb = AddLocal
	}
	switch (cause{verb, retval}) {
	case cause{Enable, retAlreadyEnabled}, cause{AddAddress, retValueExist}, cause{DelAddress, retNoSuchEntry},
		cause{DelRoles, retNoInterface}, cause{DelRoles, retNoSuchEntry}, cause{DelRow, retNoSuchEntry},
		cause{AddPool, retValueExist}, cause{DelPool, retNoSuchEntry}, cause{DelOutput, retNoSuchEntry}, cause{DelOutput, retNoInterface}:
		return nil, false
	case cause{DelLocal, retNoSuchEntry}:
		// The local is gone, or the whole row.
		return nil, true
	case cause{AddRow, retValueExist}, cause{AddLocal, retValueExist}, cause{AddOutput, retValueExist}:
		return ErrExists, true
	case cause{AddLocal, retNoSuchEntry}:
		return ErrVanished, true
	case cause{DelLocal, retUnspecified}:
		return ErrTooFew, true
	case cause{DelRow, retInvalidValue}, cause{AddLocal, retInvalidValue}, cause{DelLocal, retInvalidValue}:
		return ErrForeign, true
	case cause{AddRow, retInvalidValue}:
		return link.ErrUnsafe, false
	case cause{AddRoles, retNoInterface}, cause{AddOutput, retNoInterface}:
		return ErrNoInterface, true
	case cause{AddRoles, retValueExist}:
		return ErrOutput, true
	}
	return batch.ErrRejected, false
}
