package runtime

import (
	"context"
	"errors"
	"slices"
	"time"
)

// coroutine is a function of Context.Go that may wait while it is simulated. Its goroutine and the
// goroutine of the simulation take turns, so only one of them runs at any time.
type coroutine struct {
	path, name    string
	run           func()
	resume, yield chan struct{}
	waiting       func() bool // reports whether it may go on; nil = it has ended
}

// errNotParkable is the panic of Park outside of a function of Start.
var errNotParkable = errors.New("park: the caller was not started by Sim.Start")

// Start is the Options.Go of a simulation. The function must wait with Park or Sleep, never on a
// channel or a lock. Between two waits it runs in one step.
func (s *Sim) Start(path, name string, run func()) {
	co := &coroutine{path: path, name: name, run: run, resume: make(chan struct{}), yield: make(chan struct{})}
	s.add(unit{path: path, name: name, run: func() {
		// The goroutine starts with the first step, so that a function that is never chosen
		// leaves none behind.
		go func() {
			<-co.resume
			defer close(co.yield) // also when run ends its goroutine
			defer func() { co.waiting = nil }()
			co.run()
		}()
		s.enter(co)
	}})
}

// Park lets the calling function wait until ready reports true. The simulation calls ready between
// steps, in the order in which functions were parked; it must be cheap and change nothing. Only a
// function that Start has started may call Park.
func (s *Sim) Park(ready func() bool) {
	co := s.current
	if co == nil {
		panic(errNotParkable)
	}
	co.waiting = ready
	co.yield <- struct{}{}
	<-co.resume
}

// Sleep parks for a virtual duration, or until over, which may be nil, reports true.
func (s *Sim) Sleep(d time.Duration, over func() bool) {
	due := false
	timer := s.AfterFunc(d, func() { due = true })
	defer timer.Stop()
	s.Park(func() bool { return due || over != nil && over() })
}

// enter runs a coroutine until it parks or ends.
func (s *Sim) enter(co *coroutine) {
	outer := s.current
	s.current = co
	co.resume <- struct{}{}
	<-co.yield
	s.current = outer
	if co.waiting != nil {
		s.parked = append(s.parked, co)
	}
}

// wake makes the coroutines ready whose wait is over.
func (s *Sim) wake() {
	s.parked = slices.DeleteFunc(s.parked, func(co *coroutine) bool {
		if !co.waiting() {
			return false
		}
		s.add(unit{path: co.path, name: co.name, run: func() { s.enter(co) }})
		return true
	})
}

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
