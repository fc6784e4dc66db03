package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// watch owns the Kubernetes source: it runs it, passes on what it says and answers Pull with a new Snapshot. It is started last, so that
// nobody misses an event.
type watch struct {
	reporter
	census   // of what was passed on
	deps     *Deps
	run      uint64 // this incarnation, as the others know it
	pulled   uint64 // incarnation of the registry that has asked last for a snapshot
	node     *messages.NodeInput
	complete bool
	health   sourceHealth
	doubt    doubt // whether the source has delivered something else than we have got
}

// sourceHealth is what the source says of itself.
type sourceHealth struct {
	ok     bool
	reason string
}

// sourceEnded is posted when the source gave up.
type sourceEnded struct{ err error }

// watchTick makes the watch repeat itself.
type watchTick struct{}

func newWatch(d *Deps) runtime.Behaviour {
	return &watch{reporter: reporter{part: "watch"}, census: newCensus(), deps: d, health: sourceHealth{ok: true}}
}

// Start satisfies runtime.Behaviour.
func (w *watch) Start(c *runtime.Context) {
	w.run = c.Incarnation()
	post, source, lane, sink := c.Post(), w.deps.Source, w.deps.lanes.source, postSink{c.Post(), w.run}
	c.Go("source", func(ctx context.Context) {
		if ran, err := lane.run(ctx, func() error { return source.Run(ctx, sink) }); ran && ctx.Err() == nil {
			post(&sourceEnded{err})
		}
	})
	if c.Incarnation() > 1 {
		source.Refresh() // one that is run again believes that its list has been delivered
	}
	w.tellHealth(c)
	w.keep(c)
	c.After(w.deps.Timing.Digest, &watchTick{})
	c.Ready()
}

// Stop satisfies runtime.Behaviour; the source ends with the incarnation.
func (*watch) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (w *watch) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Snapshot:
		w.snapshot(c, m)
	case *messages.ServiceChanged:
		if w.changed(m.GetInput()) {
			c.Send(c.PID(PathRegistry), m)
		}
	case *messages.NodeChanged:
		if m.GetInput().GetGeneration() >= w.node.GetGeneration() {
			w.node = m.GetInput()
			w.tellNode(c)
		}
	case *messages.Pull:
		w.pulled = max(w.pulled, m.GetIncarnation())
		w.deps.Source.Refresh()
	case *messages.Resync: // of an earlier sibling, or of the interfaces
		if sibling := m.GetSibling(); w.node != nil && (sibling == "nodes" || sibling == "interfaces") {
			w.tellNode(c)
		} else {
			w.deps.Source.Refresh()
		}
	case *sourceHealth:
		w.health = *m
		w.tellHealth(c)
	case *sourceEnded:
		if m.err == nil {
			m.err = errors.New("it ended without an error")
		}
		c.Fail(fmt.Errorf("source failed: %w", m.err)) // the supervisor restarts us, with back-off
	case *watchTick:
		c.After(w.deps.Timing.Digest, &watchTick{})
		w.repeatSource(c)
	case *healthBeat:
		w.keep(c)
		w.repeat(c)
	}
}

// snapshot takes a list of everything. What was said of a service after it is newer and stays; only from a complete one follows that a
// service is gone.
func (w *watch) snapshot(c *runtime.Context, m *messages.Snapshot) {
	shown := make(map[string]bool, len(m.GetServices()))
	for _, in := range m.GetServices() {
		shown[in.GetKey()] = true
		w.changed(in)
	}
	if at := mark(w.run, m.GetGeneration()); m.GetComplete() {
		for _, key := range w.absent(at, shown) {
			w.enter(key, at, false)
		}
	}
	w.complete = w.complete || m.GetComplete()
	w.tellHealth(c)
	if m.GetNode() != nil && m.GetNode().GetGeneration() >= w.node.GetGeneration() {
		w.node = m.GetNode()
		w.tellNode(c)
	}
	c.Send(c.PID(PathRegistry), &messages.Snapshot{
		Services: m.GetServices(), Node: m.GetNode(), Complete: m.GetComplete(), Generation: m.GetGeneration(), Run: w.run,
		Pulled: w.pulled,
	})
}

// changed notes the latest value of a service and reports whether it is news.
func (w *watch) changed(in *messages.ServiceInput) bool {
	return w.hear(in.GetKey(), mark(w.run, in.GetGeneration()), exists(in))
}

// exists reports whether an input says anything at all.
func exists(in *messages.ServiceInput) bool { return in.GetService() != nil || len(in.GetSlices()) > 0 }

// tellNode tells everybody who needs nodes and pods.
func (w *watch) tellNode(c *runtime.Context) {
	changed := &messages.NodeChanged{Input: w.node, Run: w.run}
	for _, path := range []string{PathNodes, PathInterfaces, PathIntrospect, PathRegistry} {
		c.Send(c.PID(path), changed)
	}
}

// tellHealth reports: the first list must be complete, and the source must see what happens.
func (w *watch) tellHealth(c *runtime.Context) {
	reason := w.health.reason
	if reason == "" && !w.complete {
		reason = "the first list is not complete"
	}
	w.report(c, w.health.ok && w.complete, reason, 0)
}

// repeatSource lets the registry find out that it has missed something, and finds out whether we have.
func (w *watch) repeatSource(c *runtime.Context) {
	if !w.complete {
		w.deps.Source.Refresh() // no harm before the first list, and a help when that was lost
		return
	}
	w.age(c.Now())
	if w.node != nil {
		w.tellNode(c)
	}
	c.Send(c.PID(PathRegistry), w.digest(mark(w.run, w.node.GetGeneration())))
	if d, ok := w.deps.Source.(kube.Digester); ok && w.doubt.persists(difference(w.asSource(w.node.GetGeneration()), d.Digest())) {
		w.deps.Source.Refresh()
	}
}

// postSink turns what a source says into messages to the watch.
type postSink struct {
	post func(msg any)
	run  uint64
}

// ServiceChanged satisfies kube.Sink.
func (p postSink) ServiceChanged(in *messages.ServiceInput) {
	p.post(&messages.ServiceChanged{Input: in, Run: p.run})
}

// NodeChanged satisfies kube.Sink.
func (p postSink) NodeChanged(in *messages.NodeInput) {
	p.post(&messages.NodeChanged{Input: in, Run: p.run})
}

// Snapshot satisfies kube.Sink.
func (p postSink) Snapshot(s *messages.Snapshot) { p.post(s) }

// Health satisfies kube.Sink.
func (p postSink) Health(ok bool, reason string) { p.post(&sourceHealth{ok, reason}) }
