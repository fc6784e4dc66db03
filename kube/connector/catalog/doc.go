// Package catalog is the model of a catalog outside of Kubernetes: services, their ports and their
// instances. It also decides which parts may be used: Clean keeps a Snapshot within limits, Policy
// refuses addresses, Label and Assign make names of Services.
//
// A catalog is untrusted input. A registration at the source must not exhaust the connector, lead
// clients of the cluster to protected addresses, or take the name of another service. A refused
// part is a Problem, never an error: only the bad instance is left out, and all others stay.
//
// The package is pure. A published Snapshot belongs to its receiver and is not changed any more.
package catalog
