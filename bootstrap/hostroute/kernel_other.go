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

func (unsupported) Link(string) (int, error) { return 0, errUnsupported }

func (unsupported) Has(netip.Addr) (bool, error) { return false, errUnsupported }

func (unsupported) Routes() ([]Route, error) { return nil, errUnsupported }

func (unsupported) Add(Route) error { return errUnsupported }

func (unsupported) Remove(Route) error { return errUnsupported }

func (unsupported) Rules() ([]Rule, error) { return nil, errUnsupported }

func (unsupported) AddRule(Rule) error { return errUnsupported }

func (unsupported) RemoveRule(Rule) error { return errUnsupported }

func (unsupported) AcceptLocal(string, bool) error { return errUnsupported }

func (unsupported) Watch(context.Context, func(Route)) error { return errUnsupported }
