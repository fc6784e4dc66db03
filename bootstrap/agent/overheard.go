package agent

import (
	"context"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// ear listens to what a source says. Its methods are called from the source's one goroutine and must not block.
type ear interface {
	// heardNode is told of the nodes and pods.
	heardNode(*messages.NodeInput)
	// heardChanges is told how many Services and EndpointSlices are not what they were.
	heardChanges(services, slices int)
	// heardHealth is told what the source says of itself, as kube.Sink.Health.
	heardHealth(ok bool, reason string)
}

// overheard is a source somebody listens to, before the actors are told. A pod's simulated interface is therefore there before its service,
// as on a real node.
type overheard struct {
	kube.Source
	ear ear
}

// Run satisfies kube.Source.
func (o *overheard) Run(ctx context.Context, sink kube.Sink) error {
	return o.Source.Run(ctx, &overheardSink{Sink: sink, ear: o.ear, known: map[string]*messages.ServiceInput{}})
}

// overheardSink belongs to the goroutine of the source.
type overheardSink struct {
	kube.Sink
	ear   ear
	known map[string]*messages.ServiceInput // by service; shared with the actors, immutable
}

// ServiceChanged satisfies kube.Sink.
func (o *overheardSink) ServiceChanged(in *messages.ServiceInput) {
	o.ear.heardChanges(o.changed(in))
	o.Sink.ServiceChanged(in)
}

// NodeChanged satisfies kube.Sink.
func (o *overheardSink) NodeChanged(in *messages.NodeInput) {
	o.ear.heardNode(in)
	o.Sink.NodeChanged(in)
}

// Snapshot satisfies kube.Sink.
func (o *overheardSink) Snapshot(snapshot *messages.Snapshot) {
	if snapshot.GetNode() != nil {
		o.ear.heardNode(snapshot.GetNode())
	}
	present := make(map[string]bool, len(snapshot.GetServices()))
	services, slices := 0, 0
	add := func(in *messages.ServiceInput) {
		a, b := o.changed(in)
		services, slices = services+a, slices+b
	}
	for _, in := range snapshot.GetServices() {
		present[in.GetKey()] = true
		add(in)
	}
	for key := range o.known {
		if !present[key] {
			add(&messages.ServiceInput{Key: key})
		}
	}
	o.ear.heardChanges(services, slices)
	o.Sink.Snapshot(snapshot)
}

// Health satisfies kube.Sink.
func (o *overheardSink) Health(ok bool, reason string) {
	o.ear.heardHealth(ok, reason)
	o.Sink.Health(ok, reason)
}

// changed counts what is new in an input, what is another value, and what is gone. Values that did not change are shared between inputs, so
// that comparing pointers is enough.
func (o *overheardSink) changed(in *messages.ServiceInput) (services, slices int) {
	before := o.known[in.GetKey()]
	if before.GetService() != in.GetService() {
		services = 1
	}
	old := map[*messages.EndpointSlice]bool{}
	named := map[string]bool{}
	for _, s := range before.GetSlices() {
		old[s], named[s.GetName()] = true, true
	}
	for _, s := range in.GetSlices() {
		if !old[s] {
			slices++
		}
		delete(named, s.GetName())
	}
	slices += len(named) // gone
	if in.GetService() == nil && len(in.GetSlices()) == 0 {
		delete(o.known, in.GetKey())
	} else {
		o.known[in.GetKey()] = in
	}
	return services, slices
}

// heardNode satisfies ear: it keeps what the bootstrap itself needs of the nodes and pods.
func (a *Agent) heardNode(in *messages.NodeInput) {
	a.sawNode(in.GetSelf())
	if a.cni != nil {
		a.cni.changed(in)
	}
}

// heardChanges satisfies ear.
func (a *Agent) heardChanges(services, slices int) {
	a.stage.heardChanges(services + slices)
	if services+slices > 0 {
		a.metrics.Changed(services, slices)
		a.metrics.Queued("nat44")
	}
}

// heardHealth satisfies ear: it writes into the journal what the source says of itself, and tells node sync whether to believe it.
func (a *Agent) heardHealth(ok bool, reason string) {
	a.nodes.vouch(ok)
	text := "everything can be read and used"
	switch {
	case !ok:
		text = "the source does not see what happens"
	case reason != "":
		text = "something in the input cannot be used"
	}
	a.system.Send(a.system.PID(actors.PathJournal), &messages.Event{Kind: "source", Actor: actors.PathWatch, Text: text, Error: reason})
}
