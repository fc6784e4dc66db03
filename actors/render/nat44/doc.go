// Package nat44 is the adapter of the renderer of NAT44 rows: rows of services and of external
// configuration, with their interface roles, settings and access lists. Packages vpp/nat44 and
// vpp/acl plan, compare and talk to VPP.
//
// The adapter is plain data that belongs to the actor of its render.Driver. Access lists enforce
// source ranges of load balancers, and frontends whose action is to drop. They belong to this
// renderer: rules of a service count only at frontends that it owns, and a frontend whose source
// ranges cannot be enforced gets no row. Missing rules are added before rows that rely on them are
// changed; superfluous ones are removed when the rows are in sync.
package nat44
