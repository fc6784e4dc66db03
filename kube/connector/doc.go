// Package connector brings the services of an outside catalog into the cluster: what a Source
// publishes becomes Services and EndpointSlices.
//
//	kube/connector/catalog     the model of a catalog; limits, address policy, names; pure
//	kube/connector/apistore    the objects in the API server
//	kube/connector/filestore   the objects in a directory, without Kubernetes
//	kube/connector/leader      which connector of a cluster writes
//	kube/connector/gate        what may be deleted; a pure state machine for each source
//	kube/connector/render      objects, and the writes that bring the cluster there; pure
//	kube/connector/yamlsource  the source that reads YAML files
//	kube/connector/consul      the source that follows Consul
//	kube/connector/dnssource   the source that looks up a name in the domain name system
//
// # Flow
//
//	Source -> catalog.Clean -> Gate.Offer ; Gate.Wanted -> render.Render -> render.Diff -> writes to the Store
//
// Everything is level-triggered: a snapshot, a change of an object and a retry all trigger the
// Coalescer, whose pass compares everything anew. A pass begins only after the objects of the
// cluster have been listed once; all of it belongs to the actors (actors/connector).
package connector
