package kube

import (
	"context"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// Health says whether a source sees the changes in the cluster. While it does not see them, the
// state delivered last stays valid.
type Health struct {
	// OK is true while the source sees every change.
	OK bool
	// Reason is one line. Without OK it says why the source sees no changes; with OK it is a
	// warning that a part of the input cannot be used.
	Reason string
	// AsOf is the time at which the state delivered last was current. It is zero with OK, and zero
	// when the source does not know the time; the relay then takes the time of the report that
	// began the outage.
	AsOf time.Time
}

// Sink takes the deliveries of a source. Its methods are called in order and one at a time. They
// must not block, and must not call back into the source or the feed, except for Refresh. The
// messages are immutable.
type Sink interface {
	// ServiceChanged delivers the new value of one service. A value without a Service and without
	// slices says that the service is gone.
	ServiceChanged(*messages.ServiceInput)
	// NodeChanged delivers the nodes and the pods of this node.
	NodeChanged(*messages.NodeInput)
	// Snapshot delivers the whole state. A service that is missing from a complete Snapshot is
	// gone. A Snapshot with Complete = false is the state of an earlier run and removes nothing.
	Snapshot(*messages.Snapshot)
	// Health says whether the source sees the changes in the cluster.
	Health(Health)
}

// Source delivers the state of a cluster and its changes. The contract of every source (files,
// informers, mirror):
//
//   - The relay calls Run once per process. Run returns nil when its context ends, and an error
//     only if the source can never work; the process ends with that error. No call to the Sink
//     comes after Run has returned.
//   - First comes a complete Snapshot, after all kinds have been listed; then changes. Only the
//     local mirror may deliver Snapshots of an earlier run before that: they are not complete, and
//     all their generations are 0.
//   - Generations grow strictly from change to change as long as the source value lives, also over
//     outages and relists. A later Snapshot repeats the generations that were delivered.
//   - Outages are reported through Sink.Health, before or after the first Snapshot, and end by
//     themselves. The same health is not repeated.
type Source interface {
	// Run delivers to the sink until the context ends.
	Run(ctx context.Context, sink Sink) error
	// Refresh asks for a Snapshot soon. It never blocks, never calls the Sink itself, and may be
	// called from any goroutine at any time. Before all kinds have been listed, the first Snapshot
	// answers it.
	Refresh()
}

// Feed is the running source as the actors see it: listeners may come and go, the source goes on.
// Package relay implements it.
type Feed interface {
	// Listen makes the sink the listener in place of an earlier one, and never blocks. The sink
	// gets the last health at once, then a Snapshot, then changes: each listener sees the order
	// that the contract of Source promises. The sink gets nothing after leave has returned; leave
	// does nothing if another listener has come since.
	Listen(sink Sink) (leave func())
	// Refresh calls Refresh of the Source.
	Refresh()
}
