package runtime

import (
	"context"
	"testing"
)

// TestStatistics: a system counts its actors, their goroutines and the pending calls of Ask, and
// has nothing left in the end.
func TestStatistics(t *testing.T) {
	sys := NewSystem(Options{})
	empty := sys.Statistics()
	if empty.Actors != 0 || empty.Spawning != 0 || empty.Goroutines != 0 {
		t.Errorf("before the first actor: %+v", empty)
	}
	asked := make(chan struct{})
	child := probeSpec(probe{
		start:   func(c *Context) { c.Go("wait", func(ctx context.Context) { <-ctx.Done() }) },
		receive: func(*Context, any) { close(asked) }, // and never answers
	})
	root(t, sys, "root", Ordered("root", []Child{{Name: "a", Spec: child}}, Policy{}))
	eventually(t, "the goroutine runs", func() bool { return sys.Statistics().Goroutines == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() {
		_, err := sys.Ask(ctx, "root/a", &work{})
		answered <- err
	}()
	<-asked
	if c := sys.Statistics(); c.Actors != 2 || c.Spawning != 0 || c.Processes != empty.Processes+3 {
		t.Errorf("at work: %+v, before %+v", c, empty)
	}
	cancel()
	if err := <-answered; err == nil {
		t.Error("an answer without an actor that replies")
	}
	if c := sys.Statistics(); c.Processes != empty.Processes+2 {
		t.Errorf("after the question: %+v, before %+v", c, empty)
	}
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := sys.Statistics(); c != empty {
		t.Errorf("in the end: %+v, before %+v", c, empty)
	}
}
