package desired

import (
	"testing"
	"time"
)

// TestIntervalsGrow: on a full node, messages are repeated later.
func TestIntervalsGrow(t *testing.T) {
	config := &Config{Retry: time.Second, RollCall: 30 * time.Second}
	for actors, want := range map[int]struct{ retry, rollCall time.Duration }{
		0:      {time.Second, 30 * time.Second},
		1000:   {1500 * time.Millisecond, 30 * time.Second},
		11_000: {6500 * time.Millisecond, 230 * time.Second},
	} {
		retry, rollCall := config.backoff(actors).Min, config.rollCall(actors)
		if retry != want.retry || rollCall != want.rollCall {
			t.Errorf("%d actors: messages are resent after %s, repeated after %s, want %+v", actors, retry, rollCall, want)
		}
	}
}
