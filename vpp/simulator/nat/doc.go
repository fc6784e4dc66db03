// Package nat is the NAT44-ED plugin of the simulated VPP: address pools, interface roles,
// mappings, sessions, affinity, and the graph nodes that translate packets.
//
//	plugin.go, address.go, interface.go, vrf.go   configuration
//	mapping.go, balance.go, affinity.go           static and load-balancing mappings
//	session.go, summary.go                        the session table
//	transit.go, classify.go, in2out.go, out2in.go a packet on its way through the nodes
//
// The model has VPP's destructive side effects and its defects; each is described at the function
// that has it. Methods return VPP's return codes.
package nat
