package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestDelaysGrowToTheirCap(t *testing.T) {
	c := Config{BackoffMin: time.Millisecond, BackoffMax: 50 * time.Millisecond}
	d, limit := c.delays(1), time.Millisecond
	for n := range 100 {
		if got := d.Step(); got < limit/8 || got > limit {
			t.Fatalf("delay %d is %s, limit %s", n, got, limit)
		}
		limit = min(2*limit, 50*time.Millisecond)
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
