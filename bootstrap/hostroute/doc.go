// Package hostroute leads the packets of processes on this node to VPP: it keeps a route for each
// service CIDR in the main table of the kernel, through an interface of the host whose other end is
// in VPP.
//
// Plan is pure. Keeper owns the routes that have Protocol and no other: a route of another owner
// for the same network is left alone, and the agent's own one is withdrawn, so that there is never
// a competition. Run compares when the networks are set, after each relevant change that the kernel
// reports, and every Interval; it needs CAP_NET_ADMIN. Remove, after the end of Run, takes the
// routes away; otherwise they stay, as the rows in VPP do. All methods are safe for concurrent use.
package hostroute
