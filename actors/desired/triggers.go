package desired

import (
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/messages"
)

// triggers are the instants at which Kubernetes stamped the endpoint changes of one service that
// have not reached VPP yet. Stamps from before the service was first seen do not count: the agent
// may have been away.
type triggers struct {
	seen    int64 // latest stamp, Unix nanoseconds
	pending []trigger
}

// trigger is one stamp.
type trigger struct {
	at   int64 // Unix nanoseconds
	ipv6 bool
}

// take notes the stamps of an input that are new.
func (t *triggers) take(in *messages.ServiceInput, first bool) {
	latest := t.seen
	for _, slice := range in.GetSlices() {
		at := slice.GetTriggered()
		if at > t.seen && !first {
			t.pending = append(t.pending, trigger{at, slice.GetFamily() == messages.IPFamily_IPV6})
		}
		latest = max(latest, at)
	}
	t.seen = latest
}

// drop forgets the pending changes, because they do not concern this node.
func (t *triggers) drop() { t.pending = nil }

// report reports how long the pending changes took. They have reached VPP with this cause.
func (t *triggers) report(o report.Observer, now time.Time, cause uint64) {
	for _, p := range t.pending {
		o.Programmed(report.Programming{Latency: now.Sub(time.Unix(0, p.at)), IPv6: p.ipv6, Cause: cause})
	}
	t.pending = nil
}

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
