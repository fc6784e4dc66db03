// Package daemonset has the stories of the kubelet tier: the agent as a DaemonSet, with the image
// of tools/image and the manifests of deploy/kubernetes/base, in which only the image, the address
// of the API server and the networks of the cluster are filled in.
//
// All stories are played in their order on one cluster of two nodes (package node), each with a
// simulated VPP; that with packets takes a real one. In the last one a third node joins, which was
// taken over. What VPP holds is asked of the simulator
// (number of changes and of rows) and of the agent (rows of a service, as it has read or written
// them).
//
// TestExampleCNI has a cluster of its own, with a real VPP as a DaemonSet on each node and the CNI
// plugin of deploy/kubernetes/example-cni. The kernel of a node forwards no packet of its pods.
package daemonset
