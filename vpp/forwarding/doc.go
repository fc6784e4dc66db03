// Package forwarding reads VPP's forwarding table: the sources of routes, and the source whose
// entry VPP uses for a prefix. Packages of vpp use it for addresses that other clients of VPP may
// use too. Tables keep to which table routes lead. It changes nothing in VPP, and its callers
// interpret the answers. Functions may be called from any goroutine, and end with their context.
package forwarding
