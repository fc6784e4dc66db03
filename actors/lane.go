package actors

import "context"

// lane lets one run of an outside part in at a time. An actor that is restarted runs it again at once, but the run of its dead predecessor ends
// a little later, and sources, node sync and link all want to be run by one goroutine.
type lane struct {
	taken chan struct{}
	park  func(ready func() bool) // nil = wait as goroutines do
}

func newLane(park func(ready func() bool)) lane { return lane{make(chan struct{}, 1), park} }

// run calls fn when the lane is free. It reports false when ctx ended before that.
func (l lane) run(ctx context.Context, fn func() error) (ran bool, err error) {
	if l.park != nil {
		l.park(func() bool { return len(l.taken) == 0 || ctx.Err() != nil })
		if ctx.Err() != nil {
			return false, nil // the choice below would be a random one
		}
	}
	select {
	case l.taken <- struct{}{}:
		defer func() { <-l.taken }()
		return true, fn()
	case <-ctx.Done():
		return false, nil
	}
}
