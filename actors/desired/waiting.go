package desired

import (
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// waiting knows since when a change of a service waits for an answer of a renderer. While the
// service changes again and again, every answer may be about an earlier generation. So the clock
// belongs to the generation that was the latest when it began, and an answer to that generation, or
// a later one, moves it.
type waiting struct {
	since      int64  // Unix nanoseconds; 0 = nothing waits
	generation uint64 // generation of the clock
	// latest generation that each renderer has answered, since the clock began
	by map[string]uint64
}

// take notes that there is another generation.
func (w *waiting) take(generation uint64, now time.Time) {
	if w.since == 0 {
		w.since, w.generation = now.UnixNano(), generation
	}
}

// answered notes an acknowledgement of any state, and reports whether the clock has moved. latest
// is the present generation.
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
