package routes

import (
	"errors"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Errors of this package, for errors.Is.
var (
	// ErrUnsupported means that this VPP has no API for sources of routes: it is older than the
	// messages fib_source_add, fib_source_dump, ip_route_add_del_v2, ip_route_v2_dump or
	// ip_route_lookup_v2. Nothing was changed, and a retry cannot succeed.
	ErrUnsupported = errors.New("no FIB sources in this VPP")
	// ErrExhausted means that VPP has no source left to register: there are 255, and no message
	// unregisters one.
	ErrExhausted = errors.New("no FIB source left")
	// ErrSource means that our source is not registered any more, or has another id than when
	// the state was read: VPP has restarted. Nothing was sent, because a route of a source that
	// does not exist can crash VPP: read back.
	ErrSource = link.Classified("FIB source has changed", link.ErrStale)
	// ErrCovered means that a route of another owner leads to an external address, so that it
	// gets none of ours. Nothing was sent.
	ErrCovered = errors.New("another route leads there")
	// ErrNoTable means that VPP does not have the routing table (-3).
	ErrNoTable = errors.New("no such table")
)

// Return values of VPP 25.10 (vnet/error.h) that have a meaning for our operations.
const (
	retNoSuchFIB     = -3
	retNoSuchEntry   = -6
	retUnimplemented = -9
	retInvalidLength = -171
)

// meaningOf classifies a return value other than 0; nil where the goal of the operation is reached
// nevertheless. Deleting a missing route succeeds in VPP 25.10; a version that reports it is
// handled alike.
func meaningOf(verb Verb, retval int32) error {
	switch {
	case retval == retUnimplemented:
		return ErrUnsupported
	case verb == Delete && (retval == retNoSuchEntry || retval == retNoSuchFIB):
		return nil
	case retval == retNoSuchFIB:
		return ErrNoTable
	case retval == retInvalidLength:
		return link.ErrUnsafe
	default:
		return batch.ErrRejected
	}
}
