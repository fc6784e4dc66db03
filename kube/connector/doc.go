// Package connector brings the services of an outside catalog into the cluster: the published
// services of a Source become Services and EndpointSlices.
//
//	kube/connector/catalog     the model of a catalog; limits, address policy, names; pure
//	kube/connector/apistore    the objects in the API server
//	kube/connector/filestore   the objects in a directory, without Kubernetes
//	kube/connector/leader      chooses the connector of a cluster that writes
//	kube/connector/gate        decides what may be deleted; a pure state machine for each source
//	kube/connector/render      the wanted objects, and the writes that create them; pure
//	kube/connector/yamlsource  the source that reads YAML files
//	kube/connector/consul      the source that follows Consul
//	kube/connector/dnssource   the source that looks up a name in the domain name system
//
// # Flow
//
//	Source -> catalog.Clean -> Gate.Offer
//	Gate.Wanted -> render.Render -> render.Diff -> writes to the Store
//
// Everything is level-triggered: a snapshot, a change of an object and a retry all trigger the
// Coalescer, whose pass compares everything anew. A pass begins only after the objects of the
// cluster have been listed once. The actors run all of this (actors/connector).
package connector
