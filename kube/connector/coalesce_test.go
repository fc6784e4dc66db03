package connector

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// passes runs a coalescer with triggers, and returns the times from the start at which its passes
// began.
func passes(t *testing.T, pass time.Duration, triggers func(c *Coalescer)) []time.Duration {
	t.Helper()
	var out []time.Duration
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := NewCoalescer()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(ctx, func(context.Context) {
				out = append(out, time.Since(start))
				time.Sleep(pass)
			})
		}()
		triggers(c)
		time.Sleep(time.Minute)
		cancel()
		<-done
	})
	return out
}

// TestA20Coalescer: virtual time, so the moments are exact.
func TestA20Coalescer(t *testing.T) {
	every := func(n int, interval time.Duration) func(*Coalescer) {
		return func(c *Coalescer) {
			for range n {
				c.Trigger()
				time.Sleep(interval)
			}
		}
	}
	for _, c := range []struct {
		name     string
		pass     time.Duration
		triggers func(*Coalescer)
		want     []time.Duration
	}{
		{"none", 0, func(*Coalescer) {}, nil},
		{"one", 0, every(1, 0), []time.Duration{time.Second}},
		{"1000 in 3 s: one pass, 1 s after the last", 0, every(1000, 3*time.Millisecond), []time.Duration{2997*time.Millisecond + time.Second}},
		{"slower than the quiet period", 0, every(3, 1500*time.Millisecond), []time.Duration{time.Second, 2500 * time.Millisecond, 4 * time.Second}},
		{"during a pass", 2 * time.Second, every(2, 1500*time.Millisecond), []time.Duration{time.Second, 4 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := passes(t, c.pass, c.triggers); !slices.Equal(got, c.want) {
				t.Errorf("passes at %v, want %v", got, c.want)
			}
		})
	}
	t.Run("endless churn: one pass every 5 s", func(t *testing.T) {
		got := passes(t, 0, every(4*60, 250*time.Millisecond))
		if len(got) < 11 || len(got) > 13 {
			t.Fatalf("%d passes in 60 s: %v", len(got), got)
		}
		for i := range got[1:] {
			if d := got[i+1] - got[i]; d < LongestWait || d > LongestWait+250*time.Millisecond {
				// The last one follows the last trigger.
				if i < len(got)-2 {
					t.Errorf("%v between two passes", d)
				}
			}
		}
	})
}

// TestCoalescerBeforeRun: a trigger before Run is not lost, and many triggers lead to one pass.
func TestCoalescerBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCoalescer()
		for range 10 {
			c.Trigger()
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan int)
		go func() {
			n := 0
			c.Run(ctx, func(context.Context) { n++ })
			done <- n
		}()
		time.Sleep(time.Minute)
		cancel()
		if n := <-done; n != 1 {
			t.Errorf("%d passes, want 1", n)
		}
	})
}

// TestCoalescerEnds: it ends while it waits for the quiet period, without a pass.
func TestCoalescerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCoalescer()
		ctx, cancel := context.WithCancel(context.Background())
		c.Trigger()
		go func() {
			time.Sleep(QuietPeriod / 2)
			cancel()
		}()
		c.Run(ctx, func(context.Context) { t.Error("a pass after the end") })
	})
}
