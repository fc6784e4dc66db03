package acl

import (
	"errors"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Errors of this package, to be tested with errors.Is. Those of Apply say what the return value of VPP means for the operation.
var (
	// ErrUnsafe means that an operation was not sent because it would cut off an interface, touch what is not ours, or does not fit
	// into VPP. It is a fault of the caller, or others have filled the list of the interface; nothing was sent.
	ErrUnsafe = link.Classified("unsafe operation", link.ErrUnsafe)
	// ErrSkipped means that an operation was not sent because an ACL that it needs could not be created.
	ErrSkipped = link.Classified("skipped for want of an ACL", link.ErrSkipped)
	// ErrChanged means that somebody else has changed the lists of the interface since they were read; nothing was sent: read again.
	ErrChanged = link.Classified("lists of the interface have changed", link.ErrStale)
	// ErrVanished means that an ACL is not in VPP any more (-6): VPP was started anew, or somebody deleted it. Read again.
	ErrVanished = link.Classified("acl is not there", link.ErrStale)
	// ErrInUse means that VPP does not delete an ACL because it stands on an interface, or another plugin uses it (-142, -143, -149).
	ErrInUse = errors.New("acl is in use")
	// ErrNoInterface means that VPP does not know the interface any more (-2).
	ErrNoInterface = link.Classified("no such interface", link.ErrStale)
	// ErrRejected means that VPP answered with a return value that has no special meaning here.
	ErrRejected = errors.New("rejected by VPP")
)

// Return values of VPP 25.10 (vnet/error.h) that have a meaning for our operations.
const (
	// retTrue is what acl_interface_set_acl_list returns where the input list is refused: the handler returns the truth value of the
	// error. The output list is set by then.
	retTrue          = 1
	retNoInterface   = -2
	retNoSuchEntry   = -6
	retInUseInbound  = -142
	retInUseOutbound = -143
	retInUseLookup   = -149
)

// cause is what the table of meanings is keyed by.
type cause struct {
	verb   Verb
	retval int32
}

// meaning says what a return value means for an operation.
type meaning struct {
	// err is the sentinel; nil where the goal of the operation is reached nevertheless.
	err error
	// unknown is set where VPP does not hold what it was thought to hold.
	unknown bool
}

// meaningOf classifies a return value other than 0. What is not in the table is ErrRejected.
func meaningOf(op Op, retval int32) meaning {
	switch (cause{op.Verb, retval}) {
	case cause{Delete, retNoSuchEntry}:
		return meaning{}
	case cause{Delete, retInUseInbound}, cause{Delete, retInUseOutbound}, cause{Delete, retInUseLookup}:
		return meaning{ErrInUse, true}
	case cause{Replace, retNoSuchEntry}, cause{SetLists, retNoSuchEntry}:
		return meaning{ErrVanished, true}
	case cause{SetLists, retNoInterface}:
		if len(op.Input) == 0 {
			return meaning{nil, true} // its lists went with it
		}
		return meaning{ErrNoInterface, true}
	case cause{SetLists, retTrue}:
		return meaning{ErrRejected, true}
	}
	return meaning{ErrRejected, false}
}
