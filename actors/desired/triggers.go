package desired

import (
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/messages"
)

// triggers are the instants at which Kubernetes stamped the endpoint changes of one service that have not reached VPP yet. What was stamped
// before the service was first seen counts for nothing: the agent may have been away.
type triggers struct {
	seen    int64 // latest one, Unix nanoseconds
	pending []int64
}

// take notes the stamps of an input that are new.
func (t *triggers) take(in *messages.ServiceInput, first bool) {
	latest := t.seen
	for _, slice := range in.GetSlices() {
		at := slice.GetTriggered()
		if at > t.seen && !first {
			t.pending = append(t.pending, at)
		}
		latest = max(latest, at)
	}
	t.seen = latest
}

// drop forgets changes that mean nothing to this node.
func (t *triggers) drop() { t.pending = nil }

// report reports how long the pending changes took.
func (t *triggers) report(o report.Observer, now time.Time) {
	for _, at := range t.pending {
		o.Programmed(now.Sub(time.Unix(0, at)))
	}
	t.pending = nil
}
