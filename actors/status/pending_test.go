package status

import (
	"fmt"
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
				if b.set(k, true, now); model[k].IsZero() {
					model[k] = now
				}
			case 2, 3:
				b.set(k, false, now)
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
			if len(b.queue) > 2*len(model)+8 {
				t.Fatalf("queue of %d for %d that wait", len(b.queue), len(model))
			}
		}
	})
}

// TestIntrospectionPublishesWhatWaits: a service waits while a renderer has not acknowledged or is at work; not when VPP has refused it, and not when it is gone.
func TestIntrospectionPublishesWhatWaits(t *testing.T) {
	generation := uint64(0)
	status := func(key string, states ...messages.RenderState) *messages.ServiceStatus {
		generation++
		s := &messages.ServiceStatus{Key: key, Generation: generation, View: &messages.ServiceView{Key: key}}
		for _, state := range states {
			s.Renders = append(s.Renders, &messages.RenderAck{Key: key, Renderer: "nat44", State: state})
		}
		return s
	}
	perform(t, nil, func(s *stage) {
		all := make([]messages.RenderState, s.config.Renderers)
		each := func(state messages.RenderState) []messages.RenderState {
			for i := range all {
				all[i] = state
			}
			return all
		}
		b := &PendingSince{}
		s.config.Pending = b
		for i, step := range []struct {
			tell  any
			waits bool
		}{
			{status("a/a"), true},
			{status("a/a", each(messages.RenderState_RENDER_PENDING)...), true},
			{status("a/a", each(messages.RenderState_RENDER_IN_SYNC)...), false},
			{status("a/a", each(messages.RenderState_RENDER_PENDING)...), true},
			{status("a/a", each(messages.RenderState_RENDER_FAILED)...), false},
			{status("a/a"), true},
			{&messages.ServiceStatus{Key: "a/a", Generation: generation, Gone: true}, false},
			{status("a/a"), true},
			{&messages.Ensure{Keys: []string{"b/b"}, Complete: true}, false},
		} {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				s.Tell(step.tell)
				if got := !b.Oldest(nil).IsZero(); got != step.waits {
					t.Errorf("waits %t, want %t", got, step.waits)
				}
			})
		}
	})
}
