// Package hostroute leads the packets of processes on this node to VPP. It keeps a route for each
// service CIDR in the main table of the kernel. The route leads through an interface of the host
// with its other end in VPP. Rules lead packets to node ports at the host's own addresses there,
// before the kernel looks for a listener.
//
// Plan is pure. Keeper owns only the routes and rules that have Protocol. It leaves a route of
// another owner for the same network alone and withdraws the agent's own route, so that the two
// never compete. Run compares when the networks are set, after each relevant change that the kernel
// reports, and every Interval; it needs CAP_NET_ADMIN. Remove, after the end of Run, removes the
// routes; otherwise they stay, like the rows in VPP. All methods are safe for concurrent use.
package hostroute
