package events

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestBucket(t *testing.T) {
	r := rate{burst: 2, every: 10 * time.Second}
	b := r.full(begin)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	for _, step := range []struct {
		second int
		taken  bool
	}{{0, true}, {0, true}, {0, false}, {9, false}, {10, true}, {10, false}, {5, false}, {1000, true}, {1000, true}, {1000, false}} {
		if got := b.take(r, at(step.second)); got != step.taken {
			t.Errorf("second %d: %t", step.second, got)
		}
	}
}

func TestBucketKeepsItsWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rate{burst: float64(rapid.IntRange(1, 5).Draw(t, "burst")), every: time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "every"))}
		b, now, taken := r.full(begin), begin, 0
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 2e9).Draw(t, "passes")))
			if b.take(r, now) {
				taken++
				continue
			}
			wait := b.wait(r, now)
			if wait <= 0 {
				t.Fatal("no token, and no time to wait")
			}
			now = now.Add(wait)
			if !b.take(r, now) {
				t.Fatalf("no token after the time to wait, %v", wait)
			}
			taken++
		}
		if most := r.burst + float64(now.Sub(begin))/float64(r.every); float64(taken) > most+1e-6 {
			t.Fatalf("%d tokens, at most %f", taken, most)
		}
	})
}
