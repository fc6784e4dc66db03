package runtime

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
)

// TestGoroutinesAreLabelled: a profile says which actor a goroutine works for, in Receive and in
// what the actor starts.
func TestGoroutinesAreLabelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys := dispatched(t, Options{})
		busy, release := make(chan struct{}, 2), make(chan struct{})
		root(t, sys, "a", probeSpec(probe{receive: func(c *Context, _ any) {
			c.Go("wait", func(context.Context) { busy <- struct{}{}; <-release })
			busy <- struct{}{}
			<-release
		}}))
		synctest.Wait() // until the goroutine of the start is gone
		sys.Send(sys.PID("a"), &work{})
		<-busy
		<-busy
		var text bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
			t.Fatal(err)
		}
		close(release)
		if n := strings.Count(text.String(), `labels: {"actor":"a"}`); n != 2 {
			t.Errorf("%d stacks of the actor:\n%s", n, text.String())
		}
	})
}
