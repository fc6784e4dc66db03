package desired

import (
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// waiting knows since when a change of a service waits that a renderer has not answered. While the
// service changes again and again, an answer may always be about an earlier generation: the clock
// is about the generation that was the latest one when it began, and each answer to that one, or a
// later one, moves it.
type waiting struct {
	since      int64             // Unix nanoseconds; 0 = nothing waits
	generation uint64            // that the clock is about
	by         map[string]uint64 // latest generation that each renderer has answered since
}

// take notes that there is another generation.
func (w *waiting) take(generation uint64, now time.Time) {
	if w.since == 0 {
		w.since, w.generation = now.UnixNano(), generation
	}
}

// answered notes an acknowledgement, whatever it says, and reports whether the clock has moved.
// latest is the generation that is wanted now.
func (w *waiting) answered(ack *messages.RenderAck, renderers []string, latest uint64, now time.Time) (moved bool) {
	if w.since == 0 {
		return false
	}
	if w.by == nil {
		w.by = map[string]uint64{}
	}
	w.by[ack.GetRenderer()] = max(w.by[ack.GetRenderer()], ack.GetGeneration())
	least := latest
	for _, name := range renderers {
		least = min(least, w.by[name])
	}
	if least < w.generation {
		return false
	}
	if least < latest {
		w.since, w.generation = now.UnixNano(), latest
	} else {
		*w = waiting{}
	}
	return true
}
