package runtime

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestShutdownInEveryState: whatever the tree is doing, it ends at once and completely.
func TestShutdownInEveryState(t *testing.T) {
	slowPolicy := Policy{BackoffMin: time.Hour, BackoffMax: time.Hour, QuarantineAfter: -1}
	quarantinePolicy := Policy{QuarantineAfter: 1, QuarantineFor: time.Hour}
	for _, c := range []struct {
		name   string
		policy Policy
		before func(t *testing.T, sys *System) // the tree is up
		want   State                           // of sup/a before the shutdown
	}{
		{"idle", slowPolicy, func(*testing.T, *System) {}, StateIdle},
		{"held", slowPolicy, func(t *testing.T, sys *System) {
			mailbox(t, sys, "sup/a").Hold()
			sys.Send(sys.PID("sup/a"), &work{})
		}, StateHeld},
		{"backoff", slowPolicy, func(_ *testing.T, sys *System) { sys.Send(sys.PID("sup/a"), &boom{}) }, StateBackoff},
		{"quarantined", quarantinePolicy, func(_ *testing.T, sys *System) { sys.Send(sys.PID("sup/a"), &boom{}) }, StateQuarantined},
		{"supervisor suspended", slowPolicy, func(_ *testing.T, sys *System) {
			for range rootBudget + 1 {
				_ = sys.Kill("sup")
				synctest.Wait()
			}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var j journal
				sys := NewSystem(Options{})
				root(t, sys, "sup", Dynamic("services", func(key string) Spec { return memberSpec(&j, key) }, c.policy))
				sys.Send(sys.PID("sup"), ensure("a", "b"))
				synctest.Wait()
				c.before(t, sys)
				synctest.Wait()
				if s, _ := sys.Actor("sup/a"); s.State != c.want {
					t.Errorf("sup/a is %s, want %s", s.State, c.want)
				}
				start := time.Now()
				for range 2 { // again is harmless
					if err := sys.Shutdown(context.Background()); err != nil {
						t.Error(err)
					}
				}
				if d := time.Since(start); d > 0 {
					t.Errorf("it took %v", d)
				}
				expectActors(t, sys)
				sys.Send(sys.PID("sup"), &work{}) // into the void
			})
		})
	}
}

// TestShutdownWaitsForGoroutines: and ends their contexts.
func TestShutdownWaitsForGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys := NewSystem(Options{})
		ended := false
		root(t, sys, "a", probeSpec(probe{start: func(c *Context) {
			c.Go("slow", func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(time.Minute)
				ended = true
			})
		}}))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := sys.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "goroutine slow of a left") {
			t.Errorf("with a deadline: %v", err)
		}
		if err := sys.Shutdown(context.Background()); err != nil || !ended {
			t.Errorf("without: %v, ended %t", err, ended)
		}
	})
}

// TestShutdownNamesWhoIsLeft: a handler that blocks does not block Shutdown beyond its deadline.
func TestShutdownNamesWhoIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		sys := NewSystem(Options{})
		stuck := probeSpec(probe{receive: func(*Context, any) { <-leave }})
		var children []Child
		for _, name := range strings.Split("abcdefghijkl", "") {
			children = append(children, Child{Name: name, Spec: stuck})
		}
		root(t, sys, "sup", Ordered("sup", children, Policy{}))
		synctest.Wait()
		for _, c := range children {
			sys.Send(sys.PID("sup/"+c.Name), &work{})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		err := sys.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "shut down actors: sup (stopping), sup/a (in work for 3s), sup/b") ||
			!strings.Contains(err.Error(), "and 3 more left") {
			t.Errorf("error: %v", err)
		}
		close(leave)
		if err := sys.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// TestShutdownOfNothing: a system without actors ends at once.
func TestShutdownOfNothing(t *testing.T) {
	if err := NewSystem(Options{}).Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestShutdownWhileTheTreeHeals: in a simulation, at a random instant of a storm of failures.
func TestShutdownWhileTheTreeHeals(t *testing.T) {
	campaign(t, *seeds/2, func(t *testing.T, seed uint64) {
		if seed%2 == 0 {
			w := newOrderedWorld(t, seed, ReactRestart, ReactRestart, ReactNone)
			for _, name := range w.names {
				w.sim.AfterFunc(2*time.Millisecond, func() { _ = w.sys.Kill("sup/" + name) })
			}
			run(t, w.sim, time.Duration(w.sim.Rand().IntN(int(20*time.Millisecond))))
			return // the system is shut down by its test
		}
		w := newDynamicWorld(t, seed)
		for range 50 {
			w.sim.AfterFunc(time.Duration(w.sim.Rand().IntN(20))*time.Millisecond, w.act)
		}
		run(t, w.sim, time.Duration(w.sim.Rand().IntN(int(20*time.Millisecond))))
	})
}

// TestStopRoots: the actors and their goroutines have ended, nobody takes it for a failure, and the
// same names can be spawned again.
func TestStopRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fatal, running := "", 0
		sys := NewSystem(Options{OnFatal: func(reason string) { fatal = reason }})
		defer func() {
			if err := sys.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		spec := probeSpec(probe{start: func(c *Context) {
			running++
			c.Go("routine", func(ctx context.Context) {
				<-ctx.Done()
				running--
			})
		}})
		for range 3 {
			root(t, sys, "a", spec)
			synctest.Wait()
			if running != 1 {
				t.Fatalf("%d goroutines", running)
			}
			if err := sys.StopRoots(t.Context()); err != nil || running != 0 || fatal != "" {
				t.Fatalf("%v, %d goroutines, fatal %q", err, running, fatal)
			}
		}
		if err := sys.StopRoots(t.Context()); err != nil {
			t.Errorf("without actors: %v", err)
		}
	})
}
