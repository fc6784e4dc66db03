// Package mirror keeps a copy of the state on the node's disk, so that the agent can start while
// neither the API server nor etcd answers. The copy holds the last complete state of the Kubernetes
// source, and the last node ID that etcd confirmed.
//
//	store.go     a message in a file: format version, length, checksum; to which cluster a state
//	             belongs; Store: the files of one directory (kube/durable)
//	source.go    Source: a kube.Source in front of the real one
//	keeper.go    which states Source saves, when, and which it refuses to save
//	claims.go    Claims: the node ID, saved in the background
//
// # The promise
//
// A file has the old content or the new one, whenever the process or the machine dies. If a file is
// damaged nevertheless, an error names it; the file is renamed, and the agent starts without it.
//
// # Serving
//
// Source delivers the saved state when the real source has delivered nothing within the grace time,
// or reports that it sees no changes. The saved state is a Snapshot that is not complete: its
// services are programmed, but nothing is removed, because the cluster may have more services by
// now. All its generations are 0, so that every delivery of the real source is newer. After the
// first real Snapshot the saved state is never served again.
//
// # Saving
//
// Source saves a moment after the first of several changes, and when the real source ends. Two
// states do not simply replace the mirror. If the state belongs to another cluster, the old mirror
// is renamed first. A state without any service replaces a mirror with services only after the
// source was healthy and empty for some time. A source that has lost its data looks the same.
//
// # Which cluster
//
// A cluster is identified by the UIDs of its nodes and of the Service default/kubernetes, which the
// API server itself makes. Two states that share a UID belong to one cluster. Two states that have
// UIDs and share no UID belong to different clusters. The agent needs no further rights to read
// these UIDs. YAML written by hand has no UIDs; then the place that the source reads decides.
//
// # Concurrency
//
// Source.Run runs the real source; the clock calls the functions for the grace time, repetitions
// and saves. One lock orders all calls of the sink; it is never held across I/O. A simulation runs
// a Source on one goroutine, with its own clock and a disk in memory. Store may be used from any
// goroutine. The directory has no lock: during an update two agents of one node may share it for a
// moment, and the file of each is complete.
package mirror
