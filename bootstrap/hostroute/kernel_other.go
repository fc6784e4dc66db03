//go:build !linux

package hostroute

import (
	"context"
	"errors"
	"net/netip"
)

// Host returns a table that refuses everything: host routes are kept on Linux only.
func Host(netip.Addr) Kernel { return unsupported{} }

var errUnsupported = errors.New("host routes are kept on Linux only")

type unsupported struct{}

// Link satisfies Kernel.
func (unsupported) Link(string) (int, error) { return 0, errUnsupported }

// Has satisfies Kernel.
func (unsupported) Has(netip.Addr) (bool, error) { return false, errUnsupported }

// Routes satisfies Kernel.
func (unsupported) Routes() ([]Route, error) { return nil, errUnsupported }

// Add satisfies Kernel.
func (unsupported) Add(Route) error { return errUnsupported }

// Remove satisfies Kernel.
func (unsupported) Remove(Route) error { return errUnsupported }

// Rules satisfies Kernel.
func (unsupported) Rules() ([]Rule, error) { return nil, errUnsupported }

// AddRule satisfies Kernel.
func (unsupported) AddRule(Rule) error { return errUnsupported }

// RemoveRule satisfies Kernel.
func (unsupported) RemoveRule(Rule) error { return errUnsupported }

// AcceptLocal satisfies Kernel.
func (unsupported) AcceptLocal(string, bool) error { return errUnsupported }

// Watch satisfies Kernel.
func (unsupported) Watch(context.Context, func(Route)) error { return errUnsupported }
