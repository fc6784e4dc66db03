package desired

import (
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// TestWaiting: a change waits until each renderer has answered it or a later one; while changes go
// on, each such answer moves the clock.
func TestWaiting(t *testing.T) {
	type step struct {
		at     int64
		take   uint64 // generation of a new spec; 0 = an answer
		by     string
		answer uint64
		since  int64 // expected; 0 = nothing waits
	}
	for name, steps := range map[string][]step{
		"both answer":                {{at: 1, take: 5, since: 1}, {at: 2, by: "nat44", answer: 5, since: 1}, {at: 3, by: "routes", answer: 5}},
		"the same change twice":      {{at: 1, take: 5, since: 1}, {at: 9, take: 5, since: 1}},
		"an older answer":            {{at: 1, take: 5, since: 1}, {at: 2, by: "nat44", answer: 4, since: 1}, {at: 3, by: "routes", answer: 4, since: 1}},
		"no answer while it changes": {{at: 1, take: 5, since: 1}, {at: 2, take: 6, since: 1}, {at: 3, take: 7, since: 1}},
		"one renderer does not":      {{at: 1, take: 5, since: 1}, {at: 2, take: 6, since: 1}, {at: 3, by: "nat44", answer: 6, since: 1}},
		"answers are always late": {
			{at: 1, take: 5, since: 1},
			{at: 2, take: 6, since: 1},
			{at: 3, by: "nat44", answer: 5, since: 1},
			{at: 4, by: "routes", answer: 5, since: 4},
			{at: 5, take: 7, since: 4},
			{at: 6, by: "nat44", answer: 6, since: 4},
			{at: 7, by: "routes", answer: 6, since: 7},
			{at: 8, by: "nat44", answer: 7, since: 7},
			{at: 9, by: "routes", answer: 7},
		},
		"a later answer":     {{at: 1, take: 5, since: 1}, {at: 2, take: 6, since: 1}, {at: 3, by: "nat44", answer: 6, since: 1}, {at: 4, by: "routes", answer: 6}},
		"answers to nothing": {{at: 1, by: "nat44", answer: 5}, {at: 2, take: 6, since: 2}},
	} {
		var w waiting
		latest := uint64(0)
		for i, s := range steps {
			now := time.Unix(0, s.at)
			before := w.since
			if s.take != 0 {
				latest = s.take
				w.take(s.take, now)
			} else if moved := w.answered(&messages.RenderAck{Renderer: s.by, Generation: s.answer}, []string{"nat44", "routes"}, latest, now); moved != (w.since != before) {
				t.Errorf("%s, step %d: moved %t from %d to %d", name, i, moved, before, w.since)
			}
			if w.since != s.since {
				t.Errorf("%s, step %d: waits since %d, want %d", name, i, w.since, s.since)
			}
		}
	}
}
