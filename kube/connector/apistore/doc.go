// Package apistore is the connector's Store on the API server. It has informers for the Services
// and EndpointSlices of one namespace, for Nodes and for ServiceCIDRs, and sends single writes.
//
// Run owns the informers and must be called once; Observe and Write may be called by any goroutine.
// Writes have the field manager of the connector, and succeed only if the object still has the
// compared version. An older API server has no ServiceCIDR objects; then the configuration must
// have the ranges.
package apistore
