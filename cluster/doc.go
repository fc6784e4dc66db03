// Package cluster shares the IDs and the VPP addresses of the nodes through a node store: etcd v3
// or Leases of the API server.
//
// # Keys
//
// A store has three keys for each node. Values are the JSON of the messages, so that etcdctl and
// kubectl show them.
//
//	key in etcd                      Lease, annotation                  value
//	<prefix>/nodes/id/<id>           troupe-id-<id>, troupe.dev/record  record: holder of the ID
//	<prefix>/nodes/name/<name>       <name>, troupe.dev/record          record: ID of the node
//	<prefix>/nodes/addresses/<name>  <name>, troupe.dev/vpp-addresses   VPP addresses of the node
//	<prefix>/probe                   -                                  never written
//
// A record is a messages.NodeRecord, the addresses are messages.NodeAddresses. A request for the
// probe key checks whether etcd answers.
//
// Only the node itself writes its three keys. Other nodes delete them when the node has left
// Kubernetes. The Kubernetes part of a node (management addresses, pod CIDRs) is not stored.
// ClusterState joins all parts, and each may vanish and return without the others.
//
// # The ID
//
// An ID is the lowest positive integer that is free when the transaction that takes it is applied.
// decideClaim applies these rules in order:
//
//  1. The ID that this process has held stays its ID until the process ends. If its record vanishes
//     (the store lost its data, or the node was collected by mistake), the node claims the ID
//     again. If the store has another value while the ID is free, the node corrects the record.
//  2. Otherwise the record under this node's name decides, regardless of its UID. A Node that was
//     deleted and created again under its name has another UID, and takes over the old ID with one
//     write. A process that has held the record under its current UID does not take it over: if it
//     finds another UID in the record, it is fenced. Otherwise two agents that run as one node
//     would take the ID from each other without end. The later agent keeps the ID.
//  3. Otherwise the node claims the ID in Config.LastID, unless Config.LastUID shows that it
//     belonged to another Node object.
//  4. Otherwise the node is new and claims the lowest free ID, provided that Kubernetes lists it.
//     (A view without any node, for example from YAML files with services only, proves nothing and
//     does not prevent the claim.)
//
// In all cases, if another node holds the ID that this node has used, the claim is fenced. Pod and
// tunnel addresses derive from the ID, so two nodes would use the same addresses if this node
// silently took another ID. The fence ends when the other node leaves Kubernetes, or when an
// operator deletes both records of the ID. It also ends when this agent restarts without its mirror
// and its name record, because it is a new node then.
//
// A node holds an ID only after its process has written the record once. That write also tells
// collectors that the node is alive.
//
// # Conflicts
//
// The revisions of all keys on which a decision depends guard its transaction, so a decision on an
// old snapshot fails and does no harm. After a conflict a node backs off and decides again with the
// newer state of the watch. It then offers the store several candidates, and the store takes the
// lowest free one. Nodes without an ID take turns by name, so that many nodes that join at once get
// dense IDs.
//
// # Leases
//
// The API server has no transactions over several objects. An ID is unique because it is the name
// of an object. The creation of the Lease troupe-id-7 is the claim to ID 7; all other nodes get
// AlreadyExists. A single object with all IDs would need no second Lease, but 5,000 nodes do not
// fit into annotations (256 KiB), and each change would send the whole object to every node.
// transactLeases documents the writes of an operation, their order, and why the operation may end
// after any of them. decide has no case for such a state, because it repairs the state anyway.
//
// Leases are never renewed: a node lives as long as its Node object, which its kubelet keeps alive
// already. An idle node sends no request except its watch, which resumes from its last bookmark
// without a list. A node that joins sends a list, two creations, and a change for the addresses.
//
// The Node owns the Lease that is named after it (ownerReferences): the garbage collector of
// Kubernetes deletes this Lease with the Node. The Lease of the ID has no owner, so that the ID
// stays reserved for the grace period. Both are collected as in etcd.
//
// # Collection
//
// An observer collects a node after the node was missing in Kubernetes for the whole grace period.
// All views must be complete and list the observer itself; the observer must hold its own ID, and
// the store must answer. The grace period starts when the observer first misses the node, and again
// after each write of the node. One transaction deletes all keys of the node, guarded by their
// revisions: it fails if the node came back and wrote. Every node is an observer. Jitter prevents
// that all collect at once, and a second attempt does no harm.
//
// # Undecodable values
//
// An undecodable value never counts as a deletion. The last good value stays in use, the ID counts
// as taken, and ClusterState.reason names the key, until it is repaired or deleted. A node repairs
// an undecodable record if the other record of the pair, or the ID that it holds, proves that the
// record is its own.
//
// # Goroutines
//
// decide, a pure function, is the logic; all other code executes its decisions. Syncer.Run owns
// four goroutines: the loop (all state; calls out), the follower (list and watch), the prober (etcd
// only), and at most one writer. They send to the loop through one channel; no lock is held during
// I/O. SetNodes and Publish store their argument for the loop and return. When its context ends,
// Run waits for these goroutines and returns; the client may be closed after that. Run writes
// nothing at its end, because the ID belongs to the node and not to the process.
package cluster
