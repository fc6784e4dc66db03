// Package gate lets one run of an outside part in at a time. A restarted actor runs its part again
// at once, but the run of its predecessor ends a little later, and node sync, link and stores all
// must be run by one goroutine.
//
// A Gate is shared by the incarnations of an actor; its methods may be called from any goroutine.
package gate

import "context"

// Gate is a single-flight gate.
type Gate struct {
	taken chan struct{}
	park  func(ready func() bool)
}

// New returns an open gate. park is how goroutines wait in a simulation (runtime.Sim.Park); nil =
// as goroutines do.
func New(park func(ready func() bool)) *Gate { return &Gate{make(chan struct{}, 1), park} }

// Run calls fn when the gate is free. It reports false when ctx ended before that.
func (g *Gate) Run(ctx context.Context, fn func() error) (ran bool, err error) {
	if g.park != nil {
		g.park(func() bool { return len(g.taken) == 0 || ctx.Err() != nil })
		if ctx.Err() != nil {
			return false, nil // the choice below would be random
		}
	}
	select {
	case g.taken <- struct{}{}:
		defer func() { <-g.taken }()
		return true, fn()
	case <-ctx.Done():
		return false, nil
	}
}
