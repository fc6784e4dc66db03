// Package cluster shares the IDs and the VPP addresses of the nodes through a node store: etcd v3
// or Leases of the API server. It also runs an etcd inside the process (StartEmbedded) and makes
// clients of etcd (NewClient).
//
// # Keys
//
// A store has three keys for each node. Values are the JSON of the messages, so that etcdctl and
// kubectl show them.
//
//	etcd                              Lease, annotation
//	<prefix>/nodes/id/<id>            troupe-id-<id>, troupe.dev/record     NodeRecord      the
//	                                  holder of this ID
//	<prefix>/nodes/name/<name>        <name>, troupe.dev/record             NodeRecord      the ID
//	                                  of this node
//	<prefix>/nodes/addresses/<name>   <name>, troupe.dev/vpp-addresses      NodeAddresses   VPP
//	                                  addresses of this node
//	<prefix>/probe                                                          never written; a
//	                                                                        request for it checks
//	                                                                        whether etcd answers
//
// Only the node itself writes its three keys. Other nodes delete them when the node has left
// Kubernetes. The Kubernetes part of a node (management addresses, pod CIDRs) is not stored;
// ClusterState joins all parts, and each may vanish and return without the others.
//
// # The ID
//
// An ID is the lowest positive integer that is free when the transaction that takes it is applied.
// The rules, in order; decideClaim is their code:
//
//  1. The ID that this process has held stays its ID until the process ends. If its record vanishes
//     (the store lost its data, or the node was collected by mistake), the node claims it again; if
//     the store has another value while the ID is free, the node corrects it.
//  2. Otherwise the record under this node's name decides, regardless of its UID. A Node that was
//     deleted and recreated under its name has another UID and takes over the ID of its namesake,
//     with one write. A process does this only for a record that it has not held under its present
//     UID; one that has, and finds another UID under its name, is fenced instead of taking the ID
//     back, so that two agents that run as one node do not fight without end. The later one keeps
//     the ID.
//  3. Otherwise the ID remembered in Config.LastID is claimed, unless Config.LastUID shows that it
//     belonged to another Node object.
//  4. Otherwise the node is new and claims the lowest free ID, provided that Kubernetes lists it.
//     (A view without any node, as of a directory of YAML files with services only, proves nothing
//     and is no obstacle.)
//
// In all cases, if another node holds the ID that this node has used, the claim is fenced: pod and
// tunnel addresses derive from the ID, so that another ID without notice would make two nodes use
// the same addresses. The fence ends as soon as the other node releases the ID, by leaving
// Kubernetes or because an operator deletes both of its records; or when this agent restarts
// without its mirror and its name record, which makes it a new node.
//
// A node holds an ID only after its process has written the record once. That write also tells
// collectors that the node is alive.
//
// # Conflicts
//
// Every transaction is guarded by the revisions of all keys that its decision depends on, so that a
// decision on an old snapshot fails and does no harm. After a conflict a node backs off and decides
// again on what the watch has delivered since. It then offers the store several candidates, of
// which the lowest that is free is taken, and nodes without an ID go one after the other by name: a
// crowd that joins at once gets dense IDs.
//
// # Leases
//
// The API server has no transactions over several objects. What makes an ID unique is that it is
// the name of an object: the creation of the Lease troupe-id-7 is the claim to ID 7, and all other
// nodes get AlreadyExists. A single object with all IDs would need no second Lease, but 5,000 nodes
// do not fit into annotations (256 KiB), and each change would send all of it to every node. Which
// writes an operation consists of, in which order, and why it may end after any of them, is said at
// transactLeases; decide has no case for it, because each such state is one that it repairs anyway.
//
// Leases are never renewed: a node lives as long as its Node object, which its kubelet keeps alive
// already. A node at rest makes no request but its watch, which resumes from its last bookmark
// without a list. To join costs a list, two creations, and a change for the addresses.
//
// The Lease that is named after a node belongs to its Node (ownerReferences): the garbage collector
// of Kubernetes deletes it with the Node. The Lease of the ID has no owner, so that the ID stays
// reserved for the grace period. Both are collected as in etcd.
//
// # Collection
//
// An observer collects a node after it has missed the node in Kubernetes for the whole grace
// period, in complete views that list the observer itself, while the observer holds its own ID and
// the store answers. The grace period starts when the observer first misses the node, and again
// after each write of the node. One transaction deletes all keys of the node, guarded by their
// revisions: it fails if the node came back and wrote. Every node is an observer; jitter keeps them
// from collecting all at once, and a second attempt does no harm.
//
// # Undecodable values
//
// An undecodable value never counts as a deletion. The last good value stays in use, the ID counts
// as taken, and ClusterState.reason names the key, until it is repaired or deleted. A node repairs
// its own records if the other record of the pair, or the ID that it holds, proves that they are
// its own.
//
// # Goroutines
//
// decide is the logic, a pure function; all other code executes its decisions. Syncer.Run owns four
// goroutines: the loop (all state; calls out), the follower (list and watch), the prober (etcd
// only), and at most one writer. They send to the loop through one channel; no lock is held during
// I/O. SetNodes and Publish store their argument for the loop and return. When its context ends,
// Run waits for all of them and returns; the client may be closed after that. Run writes nothing at
// its end: the ID belongs to the node and not to the process.
package cluster
