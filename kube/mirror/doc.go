// Package mirror keeps on the node's own disk what its agent must know to start when neither the API server nor etcd answers: the last
// complete state of the Kubernetes source, and the last node ID that etcd confirmed.
//
//	codec.go     a message in a file: format version, length, checksum; pure
//	identity.go  which cluster a state is of; pure
//	fs.go        the few operations on files, so that tests can let each of them fail
//	store.go     Store: the files of one directory, replaced as a whole or not at all
//	source.go    Source: a kube.Source that stands before the real one
//	keeper.go    what Source saves, when, and what it refuses to
//
// # The promise
//
// A file is the old one or the new one, never a mixture and never half of one, whenever the process or the machine dies: it is written under
// another name, synced, renamed, and the directory is synced. A file that is damaged all the same is an error that names it; it is put
// aside and the agent starts without it.
//
// # Serving
//
// Source delivers what was saved when the real source has delivered nothing within the grace time, or says that it sees nothing. It does
// so as a Snapshot that is not complete: what it says is programmed, but nothing is removed on its word, because the cluster may know more by
// now. All its generations are 0, so that whatever the real source says is newer. The first real Snapshot ends it for good.
//
// # Keeping
//
// What the real source delivers is noted in its callbacks and written by a goroutine of its own, a moment after the first change of several
// and when the source ends. Two states are refused. One of another cluster does not replace the mirror, which is put aside under another name
// first. One without any service does not replace a mirror that has some, unless it lasts while the source is healthy: a source that
// has lost its data looks the same.
//
// # Which cluster
//
// A cluster is known by the UIDs of what is in it: its nodes and the Service default/kubernetes, which the API server itself makes. Two
// states that share one of them are of one cluster; two that both have some and share none are not. This needs no more rights than the
// agent has anyway. Where there are no UIDs, as in YAML written by hand, the place that the source reads counts.
//
// # Concurrency
//
// Source.Run owns the goroutine of the real source and the one that saves; both end with it. Everything told to the sink is told under one
// lock, which is never held across I/O. Store may be used from any goroutine. Nothing locks the directory: during an update two agents of
// one node may share it for a moment, and the file of either is whole.
package mirror
