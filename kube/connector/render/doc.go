// Package render turns what sources want into Services and EndpointSlices, and finds the writes
// that bring the cluster there. It is pure: Render and Diff are called by the one goroutine that
// owns the reconciliation, with objects as informers give them, which they never change.
//
//	gates -> []catalog.Sourced -> Render -> Wanted -> Diff -> Changes -> writer
//
// # Objects
//
// A service becomes a Service without a selector, so that no controller of Kubernetes writes its
// EndpointSlices, and slices of at most 100 endpoints. All endpoints of a slice have the same
// ports: an instance that listens on another port is in another slice. An endpoint stays in the
// slice that it is in, so one that comes or goes changes one slice; therefore Render reads the
// slices of the cluster.
//
// # Ownership
//
// An object is owned if it carries the label of the connector, of one of its sources, and of its
// cluster ID. Everything else is foreign and never written: if a foreign object has the name that
// is needed, that is a problem, until it goes.
//
// # Writes
//
// Writes are create, update and delete with the UID and resource version of the object that was
// compared, not server-side apply: a create that finds a foreign object fails instead of taking it
// over, and an update takes away a selector or port that a user added, which apply would leave.
// Labels and annotations of others stay. What is equal is not written: an unchanged snapshot costs
// nothing.
//
// The writes of one service are ordered: the Service, then slices that are added or changed, then
// those that go, so that there is no moment without endpoints.
package render
