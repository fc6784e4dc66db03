package runtime

import "context"

// Exclusive lets one run of an outside part in at a time. A restarted actor runs its part again at
// once, while the run of its predecessor is about to end. Node sync, link and stores must be run by
// one goroutine each.
//
// The incarnations of an actor share one Exclusive. Its methods may be called from any goroutine.
type Exclusive struct {
	taken chan struct{}
	park  func(ready func() bool)
}

// NewExclusive returns an Exclusive without a run. park is how goroutines wait in a simulation
// (Sim.Park); nil = as goroutines do.
func NewExclusive(park func(ready func() bool)) *Exclusive {
	return &Exclusive{make(chan struct{}, 1), park}
}

// Run calls fn when no other run is under way. It reports false when ctx ended before that.
func (x *Exclusive) Run(ctx context.Context, fn func() error) (ran bool, err error) {
	if x.park != nil {
		x.park(func() bool { return len(x.taken) == 0 || ctx.Err() != nil })
		if ctx.Err() != nil {
			return false, nil // the choice below would be random
		}
	}
	select {
	case x.taken <- struct{}{}:
		defer func() { <-x.taken }()
		return true, fn()
	case <-ctx.Done():
		return false, nil
	}
}
