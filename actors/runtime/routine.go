package runtime

import (
	"context"
	"fmt"
	"runtime/debug"
)

// routine is one running function of Context.Go. System.Shutdown waits for it.
type routine struct {
	actor, name string
}

// run starts a goroutine that belongs to an incarnation. A panic in it fails the actor if that incarnation still lives.
func (l *life) run(name string, fn func(context.Context)) {
	sys := l.box.sys
	start := sys.starter(l.box.Path(), name)
	ctx := l.context()
	r := &routine{actor: l.box.Path(), name: name}
	sys.routineStarts(r)
	start(func() {
		defer sys.routineEnds(r)
		defer func() {
			if reason := recover(); reason != nil {
				l.box.postFailure(l, newFailure(reason, "goroutine "+name, debug.Stack()))
			}
		}()
		fn(ctx)
	})
}

// starter is how a function of Context.Go is started here. It panics where that is not allowed, which fails the actor.
func (s *System) starter(path, name string) func(run func()) {
	switch {
	case s.options.Go != nil:
		return func(run func()) { s.options.Go(path, name, run) }
	case s.options.Scheduler != nil:
		panic(fmt.Errorf("%s starts %s: %w", path, name, ErrNoGoroutines))
	default:
		return func(run func()) { go run() }
	}
}
