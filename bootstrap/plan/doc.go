// Package plan is the dry run: Kubernetes objects in, what one node would serve and which rows its renderer would install out. It goes the
// way of the agent (kube/files, kube.Collect, kube/service, vpp/nat44) without its actors, a cluster or VPP.
//
//	files -> Read -> objects, problems -> Build -> Report
//
// Nothing is lost with a broken object but the object: the report holds the rest, the problems name what is missing. The package starts no
// goroutine and holds no state; Build is pure.
package plan
