// Package sourceranges is what has to be dropped in front of the NAT44 rows by access lists: source
// ranges of load balancers, and clients of a frontend whose action is to drop.
//
// Ranges is plain data with pure methods and belongs to the adapter of the nat44 renderer: whether
// what a service drops counts depends on who owns the frontend, and a frontend whose source ranges
// cannot be enforced gets no row. The access lists as a whole are two objects of that renderer:
// what is missing is added before rows that rely on it are changed, what is superfluous is removed
// after the rows are in sync. Package vpp/acl plans, compares and talks to VPP.
package sourceranges
