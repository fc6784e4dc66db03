package desired

import (
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// watch listens to the Kubernetes source and passes on its deliveries in their order. It is started
// after its receivers, so that they miss nothing.
type watch struct {
	report.Health
	config   *Config
	leave    func() // ends the listening
	node     *messages.NodeInput
	complete bool
	source   kube.Health
}

// NewWatch returns the actor.
func NewWatch(config *Config) runtime.Behaviour {
	return &watch{Health: report.Health{Part: "watch"}, config: config, source: kube.Health{OK: true}}
}

// Start satisfies runtime.Behaviour. The source answers with its health and a Snapshot.
func (w *watch) Start(c *runtime.Context) {
	w.report(c)
	w.Health.Start(c)
	// The source is not run here: it outlives the watch, so that a restart costs the API server
	// nothing.
	w.leave = w.config.Feed.Listen(postSink{c.Post()})
	c.Ready()
}

// Stop satisfies runtime.Behaviour.
func (w *watch) Stop(*runtime.Context) {
	if w.leave != nil {
		w.leave()
	}
}

// Receive satisfies runtime.Behaviour.
func (w *watch) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Snapshot:
		w.complete = w.complete || m.GetComplete()
		w.report(c)
		if m.GetNode() != nil { // the registry has it in the Snapshot
			w.nodeChanged(c, &messages.NodeChanged{Input: m.GetNode()})
		}
		c.Send(c.PID(address.Registry), m)
	case *messages.ServiceChanged:
		c.Send(c.PID(address.Registry), m)
	case *messages.NodeChanged:
		w.nodeChanged(c, m)
		c.Send(c.PID(address.Registry), m)
	case *messages.Pull:
		w.config.Feed.Refresh()
	case *messages.Resync: // an earlier sibling, or the interfaces, has started
		// Nodes and interfaces do not need the services, of which there may be ten
		// thousand.
		if sibling := m.GetSibling(); w.node != nil && (sibling == "nodes" || sibling == "interfaces") {
			w.nodeChanged(c, &messages.NodeChanged{Input: w.node})
		} else {
			w.config.Feed.Refresh()
		}
	case *kube.Health:
		w.source = *m
		w.report(c)
	case *report.Ask:
		w.Repeat(c)
	case *report.Beat:
		w.report(c) // the state becomes too old without a message
		w.Beat(c)
	}
}

// nodeChanged passes nodes and pods on. The registry gets them separately, in their order with the
// services.
func (w *watch) nodeChanged(c *runtime.Context, m *messages.NodeChanged) {
	w.node = m.GetInput()
	for _, path := range []string{address.Nodes, address.Interfaces, address.Introspect} {
		c.Send(c.PID(path), m)
	}
}

// report reports the health. The first list must be complete, and a source that does not see
// changes must not have been away for too long. Even a young snapshot of the mirror does not count
// as a list: a rolling update that cuts off the API server must stop at its first node.
func (w *watch) report(c *runtime.Context) {
	ok, reason := w.complete, w.source.Reason
	if w.AsOf = 0; !w.source.OK {
		w.AsOf = w.source.AsOf.UnixNano()
		if limit := w.config.Staleness; ok && limit >= 0 && c.Now().Sub(w.source.AsOf) > limit {
			ok, reason = false, "stale for more than "+limit.String()+": "+reason
		}
	}
	if reason == "" && !ok {
		reason = "the first list is not complete"
	}
	if !w.Current(ok, reason) {
		w.Report(c, ok, reason, 0)
	}
}

// postSink turns the deliveries of a source into messages to the watch.
type postSink struct{ post func(msg any) }

// ServiceChanged satisfies kube.Sink.
func (p postSink) ServiceChanged(in *messages.ServiceInput) {
	p.post(&messages.ServiceChanged{Input: in})
}

// NodeChanged satisfies kube.Sink.
func (p postSink) NodeChanged(in *messages.NodeInput) { p.post(&messages.NodeChanged{Input: in}) }

// Snapshot satisfies kube.Sink.
func (p postSink) Snapshot(s *messages.Snapshot) { p.post(s) }

// Health satisfies kube.Sink.
func (p postSink) Health(h kube.Health) { p.post(&h) }
