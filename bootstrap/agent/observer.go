package agent

import (
	"context"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/relay"
	"github.com/troupe-vpp/troupe/messages"
)

// sourceObserver passes deliveries of the source to node health, node sync, the simulated CNI,
// metrics and the journal.
type sourceObserver struct{ *Agent }

var _ relay.Observer = sourceObserver{}

// NodeChanged satisfies relay.Observer.
func (a sourceObserver) NodeChanged(in *messages.NodeInput) {
	a.noteNode(in.GetSelf())
	a.hostRoutes.changed(in)
	a.podNetworks.changed(in)
	if a.cni != nil {
		a.cni.changed(in)
	}
}

// ObjectsChanged satisfies relay.Observer.
func (a sourceObserver) ObjectsChanged(services, slices int) {
	a.stage.countChanges(services + slices)
	if services+slices > 0 {
		a.metrics.Changed(services, slices)
		for _, renderer := range a.renderers() {
			a.metrics.Queued(renderer)
		}
	}
}

// Health satisfies relay.Observer: it records the health of the source in the journal, and tells
// node sync whether nodes that are missing in the source were deleted.
func (a sourceObserver) Health(h kube.Health) {
	a.nodes.trust(h.OK)
	text := "everything can be read and used"
	switch {
	case !h.OK:
		text = "the source does not see what happens"
	case h.Reason != "":
		text = "something in the input cannot be used"
	}
	a.system.Send(a.system.PID(address.Journal), &messages.Event{Kind: "source", Actor: address.Watch, Text: text, Error: h.Reason})
}

// runSource runs the source. A source returns an error if it can never work; then the process ends.
func (a *Agent) runSource(r *relay.Relay) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := r.Run(ctx); err != nil {
			a.fail(err)
		}
		return nil
	}
}
