// Package plan is the dry run: it computes the frontends of one node and the rows of its renderer
// from Kubernetes objects. It uses the packages of the agent (kube/files, kube.Collect,
// kube/service, vpp/nat44) without actors, a cluster or VPP.
//
//	files -> Read -> objects, problems -> Build -> Report
//
// An invalid object affects only itself: the report has all other objects, and the problems name
// it. The package starts no goroutine and holds no state; Build is pure.
package plan
