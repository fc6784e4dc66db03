package runtime

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestExclusiveLetsOneIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, leave := NewExclusive(nil), make(chan struct{})
		go l.Run(t.Context(), func() error { <-leave; return nil }) //nolint:errcheck // its results are not what matters
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if ran, err := l.Run(gone, func() error { t.Error("two at a time"); return nil }); ran || err != nil {
			t.Errorf("ran %t, %v", ran, err)
		}
		close(leave)
		failed := errors.New("failed")
		if ran, err := l.Run(t.Context(), func() error { return failed }); !ran || !errors.Is(err, failed) {
			t.Errorf("ran %t, %v", ran, err)
		}
	})
}

// TestExclusiveWaitsForItsPredecessor: the run of an actor's next incarnation begins when the run
// of the one before has returned.
func TestExclusiveWaitsForItsPredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, leave, done := NewExclusive(nil), make(chan struct{}), make(chan error, 1)
		go g.Run(t.Context(), func() error { <-leave; return nil }) //nolint:errcheck // its results are not what matters
		synctest.Wait()
		began := false
		go func() {
			_, err := g.Run(t.Context(), func() error { began = true; return nil })
			done <- err
		}()
		synctest.Wait()
		if began {
			t.Error("two at a time")
		}
		close(leave)
		if err := <-done; err != nil || !began {
			t.Errorf("began %t, %v", began, err)
		}
	})
}

// TestExclusiveParks: in a simulation a function waits by parking, and gives up without a choice
// when its context ends.
func TestExclusiveParks(t *testing.T) {
	parked := 0
	var g *Exclusive
	ctx, cancel := context.WithCancel(t.Context())
	g = NewExclusive(func(ready func() bool) {
		if parked++; !ready() {
			cancel() // the one that waits is stopped
		}
		if !ready() {
			t.Error("parked although nothing is to wait for")
		}
	})
	ran, err := g.Run(ctx, func() error {
		inner, err := g.Run(ctx, func() error { t.Error("two at a time"); return nil })
		if inner {
			t.Error("ran")
		}
		return err
	})
	if !ran || err != nil || parked != 2 {
		t.Errorf("ran %t, %v, parked %d times", ran, err, parked)
	}
	if ran, _ := g.Run(ctx, func() error { return nil }); ran {
		t.Error("ran although its context had ended")
	}
}
