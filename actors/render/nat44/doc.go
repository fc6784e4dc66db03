// Package nat44 is the adapter of the renderer of NAT44 rows: rows of services and of external
// configuration, with their interface roles, settings and access lists (sourceranges). Package
// vpp/nat44 plans, compares and talks to VPP.
//
// The adapter is plain data that belongs to the actor of its render.Driver.
package nat44
