package cluster

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestDelaysGrowToTheirCap(t *testing.T) {
	d := delays{min: time.Millisecond, max: 50 * time.Millisecond, rand: rand.New(rand.NewPCG(1, 2))}
	for round := range 2 {
		limit := time.Millisecond
		for n := range 100 {
			if got := d.next(); got < 0 || got > limit {
				t.Fatalf("round %d: delay %d is %s, limit %s", round, n, got, limit)
			}
			limit = min(2*limit, 50*time.Millisecond)
		}
		d.reset()
	}
}

func TestDelaysDiffer(t *testing.T) {
	a := delays{min: time.Hour, max: time.Hour, rand: rand.New(rand.NewPCG(1, 2))}
	b := delays{min: time.Hour, max: time.Hour, rand: rand.New(rand.NewPCG(3, 4))}
	if a.next() == b.next() {
		t.Error("two nodes with different seeds wait equally long")
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		if !sleep(ctx, time.Minute) || time.Since(start) != time.Minute {
			t.Errorf("slept %s, want a minute", time.Since(start))
		}
		time.AfterFunc(time.Second, cancel)
		if sleep(ctx, time.Hour) || time.Since(start) != time.Minute+time.Second {
			t.Errorf("woke after %s, want an end with the context", time.Since(start))
		}
	})
}
