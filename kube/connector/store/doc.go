// Package store has the Services and EndpointSlices of the connector: in the API server (API), or
// in a directory without Kubernetes (Files).
//
// Run of a store owns its informers or its files and must be called once; Observe and Write may be
// called by any goroutine. A write succeeds only if the object still has the compared version.
package store
