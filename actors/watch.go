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
	deps        *Deps
	generations map[string]uint64 // of the services passed on
	node        *messages.NodeInput
	complete    bool
}

// sourceHealth is what the source says of itself.
type sourceHealth struct {
	ok     bool
	reason string
}

// sourceEnded is posted when the source gave up.
type sourceEnded struct{ err error }

// watchTick makes the watch repeat itself: digest and health.
type watchTick struct{}

func newWatch(d *Deps) runtime.Behaviour {
	return &watch{reporter: reporter{part: "watch"}, deps: d, generations: map[string]uint64{}}
}

// Start satisfies runtime.Behaviour.
func (w *watch) Start(c *runtime.Context) {
	post, source := c.Post(), w.deps.Source
	c.Go("source", func(ctx context.Context) {
		if err := source.Run(ctx, postSink(post)); ctx.Err() == nil {
			post(&sourceEnded{err})
		}
	})
	w.report(c, false, "the first list is not complete", 0)
	c.After(w.deps.Timing.Digest, &watchTick{})
	c.Ready()
}

// Stop satisfies runtime.Behaviour; the source ends with the incarnation.
func (*watch) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (w *watch) Receive(c *runtime.Context, msg any) {
	registry := c.PID(PathRegistry)
	switch m := msg.(type) {
	case *messages.Snapshot:
		w.snapshot(c, m)
	case *messages.ServiceChanged:
		w.service(m.GetInput())
		c.Send(registry, m)
	case *messages.NodeChanged:
		w.nodeChanged(c, m.GetInput())
		c.Send(registry, m)
	case *messages.Pull:
		w.deps.Source.Refresh()
	case *messages.Resync: // a new registry asks by itself, this only makes it faster
		w.deps.Source.Refresh()
	case *sourceHealth:
		w.report(c, m.ok && w.complete, m.reason, 0)
	case *sourceEnded:
		if m.err == nil {
			m.err = errors.New("it ended without an error")
		}
		c.Fail(fmt.Errorf("source failed: %w", m.err)) // the supervisor restarts us, with back-off
	case *watchTick:
		w.repeat(c)
		w.digest(c)
		c.After(w.deps.Timing.Digest, &watchTick{})
	}
}

func (w *watch) snapshot(c *runtime.Context, m *messages.Snapshot) {
	clear(w.generations)
	for _, in := range m.GetServices() {
		w.service(in)
	}
	w.complete = m.GetComplete()
	if w.complete {
		w.report(c, true, "", 0)
	}
	if m.GetNode() != nil {
		w.nodeChanged(c, m.GetNode())
	}
	c.Send(c.PID(PathRegistry), m)
}

func (w *watch) service(in *messages.ServiceInput) {
	if in.GetService() == nil && len(in.GetSlices()) == 0 {
		delete(w.generations, in.GetKey())
		return
	}
	w.generations[in.GetKey()] = in.GetGeneration()
}

// nodeChanged tells those who need nodes and pods without the registry's help.
func (w *watch) nodeChanged(c *runtime.Context, in *messages.NodeInput) {
	w.node = in
	changed := &messages.NodeChanged{Input: in}
	c.Send(c.PID(PathNodes), changed)
	c.Send(c.PID(PathInterfaces), changed)
	c.Send(c.PID(PathIntrospect), changed)
}

// digest lets the registry find out that it has missed something.
func (w *watch) digest(c *runtime.Context) {
	if !w.complete {
		return
	}
	c.Send(c.PID(PathRegistry), digestOf(w.generations, w.node))
	if w.node != nil {
		w.nodeChanged(c, w.node)
	}
}

// digestOf summarises what somebody knows of the source.
func digestOf(generations map[string]uint64, node *messages.NodeInput) *messages.Digest {
	d := &messages.Digest{Services: uint64(len(generations)), NodeGeneration: node.GetGeneration()}
	for key, generation := range generations {
		d.Hash ^= kube.DigestHash(key, generation)
	}
	return d
}

// postSink turns what a source says into messages to the watch.
type postSink func(msg any)

// ServiceChanged satisfies kube.Sink.
func (p postSink) ServiceChanged(in *messages.ServiceInput) {
	p(&messages.ServiceChanged{Input: in})
}

// NodeChanged satisfies kube.Sink.
func (p postSink) NodeChanged(in *messages.NodeInput) { p(&messages.NodeChanged{Input: in}) }

// Snapshot satisfies kube.Sink.
func (p postSink) Snapshot(s *messages.Snapshot) { p(s) }

// Health satisfies kube.Sink.
func (p postSink) Health(ok bool, reason string) { p(&sourceHealth{ok, reason}) }
