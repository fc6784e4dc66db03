//go:build !linux

package hostroute

import (
	"context"
	"errors"
	"net/netip"
)

var errUnsupported = errors.New("host routes are kept on Linux only")

// unsupported refuses the calls with which a Keeper begins.
type unsupported struct{ Kernel }

// Host returns a table that refuses everything.
func Host(netip.Addr) Kernel { return unsupported{} }

func (unsupported) Link(string) (int, error)                 { return 0, errUnsupported }
func (unsupported) Routes() ([]Route, error)                 { return nil, errUnsupported }
func (unsupported) Watch(context.Context, func(Route)) error { return errUnsupported }
