// Package apistore is the connector's Store on the API server: informers for the Services and
// EndpointSlices of one namespace, for the nodes and the networks of cluster IPs, and single
// writes.
//
// Run owns the informers and must be called once; Observe and Write may be called by any goroutine.
// Writes are made with the field manager of the connector, and only on the version of the object
// that was compared. An older API server has no ServiceCIDR objects: then the ranges of the
// configuration are needed.
package apistore
