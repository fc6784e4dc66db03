package gate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestGateLetsOneIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, leave := New(nil), make(chan struct{})
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
