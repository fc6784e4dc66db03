// Package cluster holds what the nodes of a cluster agree on through etcd v3: which node has which ID, and which addresses each has on the
// side of VPP. It also runs an etcd inside the process where there is none (StartEmbedded) and makes clients of any (NewClient).
//
// # Keys
//
// Values are the JSON of the messages, so that etcdctl shows them.
//
//	<prefix>/nodes/id/<id>            NodeRecord      who holds this ID        written and deleted
//	<prefix>/nodes/name/<name>        NodeRecord      which ID this node has   only together
//	<prefix>/nodes/addresses/<name>   NodeAddresses   VPP addresses of this node
//	<prefix>/probe                    never written; reading it shows that etcd answers
//
// Only the node itself writes its three keys. Others delete them, when the node has left Kubernetes. What Kubernetes knows of a node
// (management addresses, pod CIDRs) is not stored; ClusterState joins the halves, and each may vanish and return without the others.
//
// # The ID
//
// An ID is the lowest positive integer that is free when the transaction that takes it is applied. The rules, in order; decideClaim is
// their code:
//
//  1. What this process has held stays its ID until the process ends. If its record vanishes (etcd lost its data, or the node was
//     collected by mistake) it is claimed again; if etcd says something else while the ID is free, etcd is corrected.
//  2. Otherwise the record under this node's name decides, whoever wrote it: the name wins over the UID. A Node that was deleted and
//     created again under its name has another UID and takes the ID of its namesake over, with one write. A process does this only for a
//     record that it has not held under its present UID; one that has, and finds a foreign UID under its name, is fenced instead of
//     taking the ID back, so that two agents that run as one node cannot fight for ever. The later one has it.
//  3. Otherwise the ID remembered in Config.LastID is claimed, unless Config.LastUID shows that it belonged to another Node object.
//  4. Otherwise the node is new and takes the lowest free ID, provided that Kubernetes lists it. (A view without any node, as of a
//     directory of YAML files with services only, says nothing about membership and is no obstacle.)
//
// In all of these, if somebody else holds the ID that this node has used, the claim is fenced: pod and tunnel addresses derive from the
// ID, so quietly taking another one would make two nodes use the same addresses. A fence is lifted as soon as the other one gives the ID
// up, by leaving Kubernetes or by an operator who deletes both of its records; or by restarting this agent without its mirror and with
// its name record deleted, which makes it a new node.
//
// An ID counts as held only after this process has written its record once. That write also tells collectors that the node is alive.
//
// # Conflicts
//
// Every transaction is guarded by the revisions of all the keys that its decision rests on, so a decision on an old snapshot fails instead
// of doing harm. Whoever loses a race waits a random time and decides again on what the watch has delivered since. A node that lost offers
// etcd several candidates in one transaction, a nest of if-free-take-else-next, and etcd takes the lowest that is free: a crowd that joins
// at once gets dense IDs after a few rounds.
//
// # Collection
//
// A node is collected when this observer has missed it in Kubernetes for the whole grace period, with a complete view that lists this
// node itself, when this node holds its own ID, and when etcd answers. The clock starts when this observer first misses the node, and
// anew when the node writes. Whatever is stored of it is deleted in one transaction, guarded by the revisions of it all: a node that came
// back and wrote cannot be robbed. Every node is an observer; jitter keeps them from trying all at once, and trying twice does no harm.
//
// # Undecodable values
//
// A value that cannot be understood never counts as a deletion. The last good value stays in use, the ID counts as taken, and
// ClusterState.reason names the key, until it is repaired or deleted. A node repairs its own records where the other half of the pair,
// or its memory, proves that they are its own.
//
// # Goroutines
//
// decide is the logic, a function of values; everything else carries it out. Syncer.Run owns four goroutines: the loop (all state;
// calls out), the follower (list and watch), the prober, and at most one writer. They talk through one channel; no lock is held across
// I/O. SetNodes and Publish leave their argument for the loop and return. When its context ends, Run waits for all of them and returns;
// the client may be closed after that. Nothing is written at the end: the ID belongs to the node and not to the process.
package cluster
