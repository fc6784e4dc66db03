// Package controlplane runs a Kubernetes control plane for tests: etcd, kube-apiserver with RBAC
// authorization, and controllers for endpoint slices, namespaces, service accounts, DaemonSets and
// garbage collection, as processes on free ports of loopback.
//
// Start starts etcd, then the API server, then the controllers; Stop ends them in the reverse
// order, at the latest when the test ends. The API server can be stopped and started again by
// itself: it keeps its port, its keys and the data in etcd. It writes down what service accounts
// ask of it (Requests). There is no node controller, and no kubelet unless package node adds one:
// the status of nodes and pods is what the test writes, and a pod is gone with its deletion only
// where its grace period is 0.
package controlplane
