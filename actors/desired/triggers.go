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
