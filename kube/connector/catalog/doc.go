// Package catalog is the model of what a source outside of Kubernetes says: services, their ports
// and their instances. It also decides what of it may be used: Clean keeps a Snapshot within
// limits, Policy refuses addresses, Namer makes names of Services.
//
// All of it is untrusted input: a registration at the source must not be able to exhaust the
// connector, to lead clients of the cluster to addresses that are none of the source's business, or
// to take the name of another service. What is refused is a Problem, never an error: one bad
// instance leaves alone, and all others stay.
//
// The package is pure. A Snapshot belongs to its receiver once it is published and is not changed
// any more.
package catalog
