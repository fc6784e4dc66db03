// Package vnet is layer 2 and 3 of the simulated VPP: interfaces, addresses, neighbours, the
// forwarding tables, feature arcs, and the return codes of the binary API. Plugins (packages nat
// and acl) watch it for interfaces and addresses that come and go.
//
// A Network is not safe for concurrent use: package simulator locks the whole model, as one main
// thread serves all API clients of a real VPP.
package vnet
