package link

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	b, limit := newBackoff(50*time.Millisecond, 2*time.Second), 50*time.Millisecond
	for step := range 20 {
		if got := b.Step(); got > limit || got < limit/2-1 {
			t.Fatalf("step %d: %s, want %s to %s", step, got, limit/2, limit)
		}
		limit = min(2*limit, 2*time.Second)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		sleep(ctx, time.Hour)
		if took := time.Since(began); took != time.Second {
			t.Errorf("slept %s", took)
		}
		sleep(t.Context(), time.Minute)
		if took := time.Since(began); took != time.Minute+time.Second {
			t.Errorf("slept %s", took)
		}
	})
}
