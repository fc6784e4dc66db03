// Package kube reads Kubernetes. Its root holds the parts that all sources share: the interfaces
// Source, Sink and Feed, the Store, which joins normalised objects into the messages for the
// actors, and the Relay. The Relay runs the source for the life of the process and passes its
// deliveries to one listener at a time: the watch actor, whose restart therefore costs the API
// server no request. The Relay starts no goroutine; it holds its lock while it calls the listener,
// which must not block.
//
//	kube/normalize    API objects -> messages, pure
//	kube/files        the source that reads YAML and JSON files of a watched directory
//	kube/informers    the source that watches the API server
//	kube/apiserver    the requests to the API server
//	kube/mirror       the source in front of one of these that keeps their last state on disk
//	kube/service      what a node serves: ServiceInput + NodeContext -> ServiceView, pure
//	kube/healthcheck  HTTP servers for load balancers that check services and the node
//	kube/events       Kubernetes Events about services and the node
//	kube/strictyaml   strict decoding of YAML with lines, paths and limits
//	kube/durable      small files that survive a crash of the process or of the machine
//	kube/connector    services of an outside catalog, as Services of the cluster
//	kube/addresses    which addresses Services get from pools, and who announces them, pure
//	kube/allocator    writes these addresses into the status of Services
//	kube/leader       chooses one of several processes, by a Lease
//	kube/check        what a cluster lacks for an agent, and packets between its pods
//	kube/podforward   reaches the agent of a node through the API server, for commands
//	kube/kubetest     a Sink and objects for tests
//
// # Flow
//
//	API server / files -> normalize -> Store.Set, Commit -> mirror -> relay -> watch actor
//
// Files and informers each have one goroutine that changes the Store, commits and calls the Sink;
// callbacks of informers and file events only wake it. Informers normalise in the transform of
// their cache, files as they are read. The Store is safe for concurrent use. The order, the
// generations and the end of a source are in the contract of Source.
//
// Several changes between two commits coalesce. A change that is reverted before the commit is
// never delivered.
//
// # Ownership
//
// A message that the Store has handed to a Sink is immutable and shared: the Store never changes it
// again.
package kube
