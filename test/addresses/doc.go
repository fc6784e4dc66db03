// Package addresses tests the allocator of addresses as a process: against a real control plane,
// with a token that is bound to the rules of deploy/kubernetes/addresses.
package addresses
