// Package node runs Kubernetes nodes for tests on one machine: containerd, kubelet and pods, each
// node in namespaces of its own.
//
// A node has a mount, network, pid and UTS namespace. Its /run, /var/lib, /var/log and /dev/shm are
// private, so that paths with fixed names (/run/vpp, /var/lib/troupe) are there once per node;
// everything else is the machine's. Its cgroups are below one of its own, its sysctls are files
// that kubelet may read. Two nodes have a link between them, a
// third one may join without a link; each reaches the API server, which is
// on loopback of the machine, at the same address of its own loopback. The API server reaches the
// nodes, for exec and logs, through a proxy that connects from their own networks.
//
// The program of a test calls Init first: with it the first process of a node is made. A process of
// a node ends with that first process, which ends with the test, also with one that was killed;
// cgroups that such a test has left are removed by the next one. Missing says what the machine
// lacks; needed are root, runc, nsenter, ip and cgroups of version 1 or 2.
package node
