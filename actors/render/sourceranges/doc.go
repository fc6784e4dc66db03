// Package sourceranges has the rules that access lists enforce in front of the NAT44 rows: source
// ranges of load balancers, and frontends whose action is to drop.
//
// Ranges is plain data with pure methods and belongs to the adapter of the nat44 renderer, for two
// reasons. The rules of a service count only at frontends that it owns. A frontend whose source
// ranges cannot be enforced gets no row. All access lists together are two objects of that
// renderer. Missing rules are added before rows that rely on them are changed; superfluous ones are
// removed when the rows are in sync. Package vpp/acl plans, compares and talks to VPP.
package sourceranges
