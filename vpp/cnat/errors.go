package cnat

import (
	"errors"
)

// Errors of this package, for errors.Is. Apply's errors classify the return value of VPP for the
// operation.
var (
	// ErrNoInterface means that VPP does not know the interface any more (-2).
	ErrNoInterface = errors.New("no such interface")
	// ErrBelowICMP means that the row is not sent, because VPP would crash.
	ErrBelowICMP = errors.New("VPP of this version cannot serve an address below a route that answers with ICMP")
)

// Return values of VPP 25.10 (vnet/error.h) that have a meaning for our operations.
const (
	retNoInterface = -2
	retNoSuchEntry = -6
	retNotExcluded = 1 // the removal of a network that is not excluded
)
