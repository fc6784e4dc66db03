package actors

import "context"

// lane lets one run of an outside part in at a time. An actor that is restarted runs it again at once, but the run of its dead predecessor ends
// a little later, and sources, node sync and link all want to be run by one goroutine.
type lane chan struct{}

func newLane() lane { return make(lane, 1) }

// run calls fn when the lane is free. It reports false when ctx ended before that.
func (l lane) run(ctx context.Context, fn func() error) (ran bool, err error) {
	select {
	case l <- struct{}{}:
		defer func() { <-l }()
		return true, fn()
	case <-ctx.Done():
		return false, nil
	}
}
