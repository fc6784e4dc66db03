// Package render turns the wanted services of sources into Services and EndpointSlices, and finds
// the writes for the cluster. It is pure: the goroutine that owns the reconciliation calls Render
// and Diff with the objects of informers, which they never change.
//
//	gates -> []catalog.Sourced -> Render -> Wanted -> Diff -> Changes -> writer
//
// # Objects
//
// A service becomes a Service without a selector, so that no controller of Kubernetes writes its
// EndpointSlices, and slices of at most 100 endpoints. All endpoints of a slice have the same
// ports: an instance that listens on another port is in another slice. An endpoint stays in its
// slice, so an added or removed endpoint changes one slice; therefore Render reads the slices of
// the cluster.
//
// # Ownership
//
// An object is owned if it has the labels of the connector, of one of its sources, and of its
// cluster ID. Every other object is foreign and never written. A foreign object with a needed name
// is a problem until it is gone.
//
// # Writes
//
// Writes are create, update and delete with the UID and resource version of the compared object.
// Server-side apply does not fit: a create must fail if it finds a foreign object, and an update
// must remove a selector or port that a user added. Labels and annotations of others stay. Equal
// objects are not written, so an unchanged snapshot costs nothing.
//
// The writes of one service are ordered: the Service, then added and changed slices, then removed
// slices, so that there is no moment without endpoints.
package render
