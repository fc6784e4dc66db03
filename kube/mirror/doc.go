// Package mirror keeps on the node's own disk what its agent must know to start when neither the
// API server nor etcd answers: the last complete state of the Kubernetes source, and the last node
// ID that etcd confirmed.
//
//	codec.go     a message in a file: format version, length, checksum; pure
//	identity.go  which cluster a state is of; pure
//	store.go     Store: the files of one directory, replaced as a whole or not at all
//	             (kube/durable)
//	source.go    Source: a kube.Source in front of the real one
//	keeper.go    what Source saves, when, and what it refuses to save
//	clock.go     the clock of Source, which a simulation replaces
//
// # The promise
//
// A file has the old content or the new one, whenever the process or the machine dies. A file that
// is damaged all the same is an error that names it; it is renamed, and the agent starts without
// it.
//
// # Serving
//
// Source delivers the saved state when the real source has delivered nothing within the grace time,
// or reports that it sees nothing. It delivers a Snapshot that is not complete: what it has is
// programmed, but nothing is removed, because the cluster may have more by now. All its generations
// are 0, so that every delivery of the real source is newer. The first real Snapshot ends this for
// good.
//
// # Saving
//
// Source saves a moment after the first change of several, and when the real source ends. It
// refuses two states. One of another cluster does not replace the mirror, which is renamed first.
// One without any service does not replace a mirror with services, unless it lasts while the source
// is healthy: a source that has lost its data looks the same.
//
// # Which cluster
//
// A cluster is known by the UIDs of its nodes and of the Service default/kubernetes, which the API
// server itself makes. Two states that share a UID are of one cluster; two that both have UIDs and
// share none are not. The agent needs no more rights for that. Without UIDs, as in YAML written by
// hand, the place that the source reads counts.
//
// # Concurrency
//
// Source.Run runs the real source; the grace time, repetitions and saves are calls of the clock.
// Everything told to the sink is told under one lock, which is never held across I/O. With a clock
// that calls inline and a disk in memory a simulation runs it on one goroutine. Store may be used
// from any goroutine. Nothing locks the directory: during an update two agents of one node may
// share it for a moment, and the file of either is whole.
package mirror
