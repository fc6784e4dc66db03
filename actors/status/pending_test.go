package status

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

// TestPendingSinceKnowsTheOldest compares a PendingSince with a plain map after every step.
func TestPendingSinceKnowsTheOldest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b PendingSince
		now, model := time.Unix(1000, 0), map[string]time.Time{}
		key := rapid.SampledFrom([]string{"a/a", "b/b", "c/c", "d/d"})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "passed")) * time.Second)
			switch k := key.Draw(t, "key"); rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				at := now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "earlier")) * time.Second)
				b.set(k, at)
				model[k] = at
			case 2, 3:
				b.set(k, time.Time{})
				delete(model, k)
			case 4:
				exist := map[string]bool{k: true}
				b.keep(exist)
				for other := range model {
					if !exist[other] {
						delete(model, other)
					}
				}
			}
			skipped := key.Draw(t, "skipped")
			for name, skip := range map[string]func(string) bool{"none": nil, "one": func(k string) bool { return k == skipped }} {
				var want time.Time
				for k, at := range model {
					if (skip == nil || !skip(k)) && (want.IsZero() || at.Before(want)) {
						want = at
					}
				}
				if got := b.Oldest(skip); !got.Equal(want) {
					t.Fatalf("skipping %s: oldest %v, want %v of %v", name, got, want, model)
				}
			}
		}
	})
}

// TestIntrospectionPublishesWhatWaits: what the services say, until they are gone.
func TestIntrospectionPublishesWhatWaits(t *testing.T) {
	generation := uint64(0)
	status := func(since int64, gone bool) *messages.ServiceStatus {
		generation++
		return &messages.ServiceStatus{Key: "a/a", Generation: generation, View: &messages.ServiceView{Key: "a/a"}, Unanswered: since, Gone: gone}
	}
	perform(t, nil, func(s *stage) {
		b := &PendingSince{}
		s.config.Pending = b
		for i, step := range []struct {
			tell  any
			since int64 // 0 = nothing waits
		}{
			{status(1000, false), 1000},
			{status(1000, false), 1000},
			{status(2000, false), 2000},
			{status(0, false), 0},
			{status(3000, false), 3000},
			{status(3000, true), 0},
			{status(4000, false), 4000},
			{&messages.Ensure{Keys: []string{"b/b"}, Complete: true}, 0},
		} {
			s.Tell(step.tell)
			if got := b.Oldest(nil); got.IsZero() != (step.since == 0) || step.since != 0 && got.UnixNano() != step.since {
				t.Errorf("step %d: waits since %v, want %d", i, got, step.since)
			}
		}
	})
}
