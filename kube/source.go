package kube

import (
	"context"

	"github.com/troupe-vpp/troupe/messages"
)

// Sink takes what a source has seen. All methods are called from the source's one goroutine, in order, and must not block. The
// messages are immutable.
type Sink interface {
	// ServiceChanged delivers the new value of one service; without a Service and without slices the service is gone.
	ServiceChanged(*messages.ServiceInput)
	// NodeChanged delivers the new value of the node's surroundings.
	NodeChanged(*messages.NodeInput)
	// Snapshot delivers everything; a service that is not in it is gone.
	Snapshot(*messages.Snapshot)
	// Health says whether the source sees what happens in the cluster. While it does not, what it delivered stays valid as the last that
	// was known. With ok, a reason is a warning: something in the input could not be used.
	Health(ok bool, reason string)
}

// Source delivers the state of a cluster and its changes to a Sink.
type Source interface {
	// Run delivers to the sink until the context ends. It returns nil then, and an error only if the source can never work. Outages are
	// not errors: they are told through Sink.Health and end by themselves. Run is called once.
	Run(ctx context.Context, sink Sink) error
	// Refresh asks for a Snapshot soon; it does not block and may be called at any time, from any goroutine. Before the first complete list
	// there is nothing to deliver, and the first Snapshot answers it.
	Refresh()
}

// Digester is a Source that can say what its Sink should have by now. Both sources of this room are Digesters.
type Digester interface {
	// Digest returns the digest of everything delivered so far; any goroutine may call it.
	Digest() *messages.Digest
}
