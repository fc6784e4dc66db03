// Package kube is the room of what Kubernetes says and wants. Its root holds what all sources share: the Source and Sink interfaces
// and the Store, which joins normalised objects into the values the troupe works with.
//
//	kube/normalize  API objects -> messages, pure
//	kube/files      a source that reads YAML and JSON files of a watched directory
//	kube/informers  a source that watches the API server
//	kube/service    what a node serves: ServiceInput + NodeContext -> ServiceView, pure
//	kube/kubetest   a Sink and objects for tests
//
// # Flow
//
//	API server / files -> normalize -> Store.Set.. -> Store.Commit -> Sink
//
// A source has one goroutine that owns the right side of this: it normalises, changes the Store, commits and calls the Sink. Callbacks
// of informers and file events only say "look again" to it. The Store is safe for concurrent use, so that introspection may read it.
//
// # Ordering
//
// The first call to a Sink that carries content is a complete Snapshot, after every kind has been listed. From then on every change of a value
// leads to one ServiceChanged or NodeChanged with a larger generation. Several changes between two commits coalesce; a change that is
// taken back in between is not seen at all. A Snapshot may come at any time (after Refresh); what it carries has the generations that
// were given out before.
//
// # Ownership
//
// What is handed to a Sink is immutable and shared: the Store never touches it again.
//
// # Shutdown
//
// Source.Run returns when its context ends, and with it every goroutine it started.
package kube
