package runtime

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPolicyDefaults(t *testing.T) {
	want := Policy{
		Budget: 10, Window: 10 * time.Second, BackoffMin: time.Millisecond, BackoffMax: time.Second, Jitter: 0.2,
		HealthyAfter: time.Minute, QuarantineAfter: 3, QuarantineWindow: 5 * time.Second, QuarantineFor: 30 * time.Second,
	}
	if diff := cmp.Diff(want, Policy{}.withDefaults(10, time.Second)); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	odd := Policy{BackoffMin: time.Minute, Jitter: 7}.withDefaults(10, time.Second)
	if odd.BackoffMax != time.Minute || odd.Jitter != 1 {
		t.Errorf("contradictions are resolved: %+v", odd)
	}
	if p := (Policy{Jitter: -1, Budget: -1, QuarantineAfter: -1}).withDefaults(10, time.Second); p.Jitter != 0 || p.Budget != -1 || p.QuarantineAfter != -1 {
		t.Errorf("negative means none: %+v", p)
	}
}

func TestDelayDoublesUpToTheCap(t *testing.T) {
	p := Policy{BackoffMin: time.Millisecond, BackoffMax: 500 * time.Millisecond}
	var got []time.Duration
	for n := 1; n <= 12; n++ {
		got = append(got, p.backoff().Delay(n, rand.New(rand.NewPCG(1, 1)))/time.Millisecond)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 500}; !slices.Equal(got, want) {
		t.Errorf("delays in ms: %v", got)
	}
}

// TestBackoffByName: the same name and try give the same delay, different ones do not retry at the
// same instant, and no try is too many.
func TestBackoffByName(t *testing.T) {
	b := Backoff{Min: time.Second, Max: 30 * time.Second, Jitter: 0.2}
	instants := map[time.Duration]bool{}
	for i := range 1000 {
		name := fmt.Sprint("default/svc-", i)
		for tries, want := range []time.Duration{1, 1, 2, 4, 8, 16, 30, 30} {
			d := b.DelayFor(name, tries)
			if want *= time.Second; d < want*8/10 || d > want*12/10 || d != b.DelayFor(name, tries) {
				t.Fatalf("%s, try %d: %v", name, tries, d)
			}
			if tries == 1 {
				instants[d.Truncate(time.Millisecond)] = true
			}
		}
	}
	if len(instants) < 300 { // of 400 ms
		t.Errorf("1000 names retry at %d instants", len(instants))
	}
	for tries, want := range map[int]time.Duration{-1: time.Second, 0: time.Second, 2: 1500 * time.Millisecond, math.MaxInt: time.Hour} {
		if d := (Backoff{Min: time.Second, Max: time.Hour, Factor: 1.5}).DelayFor("x", tries); d != want {
			t.Errorf("try %d: %v, want %v", tries, d, want)
		}
	}
	if d := (Backoff{Min: time.Minute, Max: time.Second}).DelayFor("x", 5); d != time.Minute {
		t.Errorf("a cap below the first delay: %v", d)
	}
}

// TestDelayIsBounded: for any policy and any number of failures the delay is positive and within
// cap and jitter.
func TestDelayIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			BackoffMin: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "min")),
			BackoffMax: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "max")),
			Jitter:     rapid.Float64Range(0, 0.9).Draw(t, "jitter"),
		}.withDefaults(10, time.Second)
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		d := p.backoff().Delay(n, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)))
		low := time.Duration(float64(p.BackoffMin) * (1 - p.Jitter))
		high := time.Duration(float64(p.BackoffMax)*(1+p.Jitter)) + 1
		if d < low-1 || d > high {
			t.Fatalf("%+v: delay %v after %d failures is not within %v and %v", p, d, n, low, high)
		}
	})
}

// TestWindowAgainstModel: the sliding window counts what lies in it, and does not keep what has
// left it.
func TestWindowAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		var all []time.Time
		now := time.Unix(0, 0)
		length := time.Duration(rapid.IntRange(1, 50).Draw(t, "length"))
		for range rapid.IntRange(1, 200).Draw(t, "failures") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "pause")))
			all = append(all, now)
			want := 0
			for _, at := range all {
				if now.Sub(at) < length {
					want++
				}
			}
			if got := w.add(now, length); got != want || w.count() != want {
				t.Fatalf("%d failures in the window, want %d", got, want)
			}
			if len(w.at) > 2*want+1 {
				t.Fatalf("%d kept of %d", len(w.at), want)
			}
		}
	})
}

// TestBackoffTiming: the restarts of a crashing child on the real clock of a bubble: 1, 2, 4, ...
// capped, and from the beginning after a healthy time.
func TestBackoffTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Time
		sick := 6 // so many incarnations fail after a second
		child := probeSpec(probe{
			start: func(c *Context) {
				starts = append(starts, c.Now())
				if sick--; sick >= 0 {
					c.After(time.Second, &boom{})
				}
			},
			receive: func(*Context, any) { panic("boom") },
		})
		policy := Policy{Budget: -1, BackoffMin: time.Second, BackoffMax: 8 * time.Second, Jitter: -1, HealthyAfter: time.Minute}
		sys := dispatched(t, Options{})
		root(t, sys, "sup", Ordered("sup", []Child{{Name: "a", Spec: child}}, policy))
		time.Sleep(time.Hour)
		synctest.Wait()
		if got, want := pauses(starts), []time.Duration{1, 2, 4, 8, 8, 8}; !slices.Equal(got, want) {
			t.Errorf("pauses before restarts in s: %v, want %v", got, want)
		}
		starts, sick = starts[len(starts)-1:], 2
		starts[0] = time.Now()
		if err := sys.Kill("sup/a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		starts[0] = starts[0].Add(-time.Second) // Kill needs no second to fail
		if got, want := pauses(starts), []time.Duration{1, 2, 4}; !slices.Equal(got, want) {
			t.Errorf("pauses after a healthy hour in s: %v, want %v", got, want)
		}
	})
}

// pauses are the times between starts in seconds, without the second that each incarnation lived.
func pauses(starts []time.Time) (out []time.Duration) {
	for i := 1; i < len(starts); i++ {
		out = append(out, (starts[i].Sub(starts[i-1])-time.Second)/time.Second)
	}
	return out
}

// TestBackoffJitter: a hundred children that fail at the same instant do not come back at the same
// instant.
func TestBackoffJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		instants := map[time.Time]int{}
		n := 0
		sys := dispatched(t, Options{Seed: 7})
		root(t, sys, "sup", Dynamic("sup", func(string) Spec {
			return probeSpec(probe{start: func(c *Context) {
				if c.Incarnation() == 2 {
					instants[c.Now()]++
					n++
				}
			}})
		}, Policy{BackoffMin: 10 * time.Second}))
		for i := range 100 {
			sys.Send(sys.PID("sup"), ensure(string(rune('A'+i))))
		}
		synctest.Wait()
		start := time.Now()
		for i := range 100 {
			if err := sys.Kill("sup/" + EscapeName(string(rune('A'+i)))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n != 100 || len(instants) < 90 {
			t.Errorf("%d restarts at %d instants", n, len(instants))
		}
		for at := range instants {
			if d := at.Sub(start); d < 8*time.Second || d > 12*time.Second {
				t.Errorf("restart after %v", d)
			}
		}
	})
}
