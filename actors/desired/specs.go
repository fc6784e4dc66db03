package desired

import (
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// trace says whether the service records the outcome of a spec in the journal. Specs that all
// services get at the same time are not recorded.
type trace bool

const (
	traced   trace = true
	untraced trace = false
)

// give gives a service a new spec and sends it. Until the node is known the registry only keeps it.
func (r *registry) give(c *runtime.Context, e *entry, in *messages.ServiceInput, t trace) {
	r.generation++
	e.spec = &messages.ServiceSpec{Input: in, Node: r.context, Generation: r.generation, Traced: bool(t), Refused: r.budget.Refused(in.GetKey())}
	if e.started { // it may be in quarantine because of the last spec
		c.Send(c.PID(address.Services), &messages.Nudge{Key: in.GetKey(), Generation: r.generation})
	}
	r.send(c, e)
}

// measure enters the size of a service into the budget.
func (r *registry) measure(in *messages.ServiceInput) {
	r.budget.Set(in.GetKey(), in.GetService().GetCreated(), service.Measure(in, r.context, &r.config.Serving))
}

// moved gives a service a new spec where its namespace has gained or lost the room for it.
func (r *registry) moved(c *runtime.Context, keys []string, t trace) {
	for _, key := range keys {
		if e := r.entries[key]; e != nil && e.spec.GetRefused() != r.budget.Refused(key) {
			r.give(c, e, e.spec.GetInput(), t)
		}
	}
}

// send sends the spec of a service. Nothing is local and nothing has an address before the node is
// known. In the first incarnation, an actor that is being spawned asks for its spec.
func (r *registry) send(c *runtime.Context, e *entry) {
	if r.context != nil && (e.started || c.Incarnation() > 1) {
		c.Send(c.PID(address.Service(e.spec.GetInput().GetKey())), e.spec)
	}
}

// pulled answers a service that asks for its spec.
func (r *registry) pulled(c *runtime.Context, key string) {
	e := r.entries[key]
	switch {
	case e != nil:
		e.started = true
		r.send(c, e)
	case r.complete: // before the first complete list the service may exist
		c.Send(c.PID(address.Services), &messages.Release{Key: key})
	}
}

// retired releases a service that has left VPP, unless it is wanted again.
func (r *registry) retired(c *runtime.Context, m *messages.Retired) {
	e := r.entries[m.GetKey()]
	// A service that was created again meanwhile has a higher generation than the one that
	// retired.
	if e != nil && (e.spec.GetInput().GetService() != nil || m.GetGeneration() < e.spec.GetGeneration()) {
		return
	}
	if e == nil && !r.complete {
		return // it may exist
	}
	delete(r.entries, m.GetKey())
	r.members = nil
	c.Send(c.PID(address.Services), &messages.Release{Key: m.GetKey()})
	for _, renderer := range r.config.Renderers { // one that has just got the list with it would wait
		c.Send(c.PID(address.Renderer(renderer)), &messages.Render{Key: m.GetKey(), Generation: m.GetGeneration()})
	}
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
