package acl

import (
	"errors"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Errors of this package, for errors.Is. Apply's errors classify the return value of VPP for the
// operation.
var (
	// ErrChanged means that another client has changed the lists of the interface since they
	// were read; nothing was sent: read again.
	ErrChanged = link.Classified("lists of the interface have changed", link.ErrStale)
	// ErrVanished means that an ACL is not in VPP any more (-6): VPP has restarted, or another
	// client deleted it. Read again.
	ErrVanished = link.Classified("acl is not there", link.ErrStale)
	// ErrInUse means that VPP does not delete an ACL because it is on an interface, or another
	// plugin uses it (-142, -143, -149).
	ErrInUse = errors.New("acl is in use")
	// ErrNoInterface means that VPP does not know the interface any more (-2).
	ErrNoInterface = link.Classified("no such interface", link.ErrStale)
)

// Return values of VPP 25.10 (vnet/error.h) that have a meaning for our operations.
const (
	// retTrue is what acl_interface_set_acl_list returns where the input list is refused: the
	// handler returns a truth value and not the error. VPP has set the output list by then.
	retTrue          = 1
	retNoInterface   = -2
	retNoSuchEntry   = -6
	retInUseInbound  = -142
	retInUseOutbound = -143
	retInUseLookup   = -149
)

// cause is the key of the table in meaningOf.
type cause struct {
	verb   Verb
	retval int32
}

// meaningOf classifies a return value other than 0: nil where the goal of the operation is reached
// nevertheless, batch.ErrRejected where the value has no special meaning. unknown is set where the
// answer contradicts the State.
func meaningOf(op Op, retval int32) (err error, unknown bool) {
	switch (cause{op.Verb, retval}) {
	case cause{Delete, retNoSuchEntry}:
		return nil, false
	case cause{Delete, retInUseInbound}, cause{Delete, retInUseOutbound}, cause{Delete, retInUseLookup}:
		return ErrInUse, true
	case cause{Replace, retNoSuchEntry}, cause{SetLists, retNoSuchEntry}:
		return ErrVanished, true
	case cause{SetLists, retNoInterface}:
		if len(op.Input) == 0 {
			return nil, true // VPP deletes the lists with the interface
		}
		return ErrNoInterface, true
	case cause{SetLists, retTrue}:
		return batch.ErrRejected, true
	}
	return batch.ErrRejected, false
}
