// Package nat44 is the adapter of the renderer of NAT44 rows: rows of services and of external
// configuration, the interface roles and settings that they need, and the access lists in front of
// them (sourceranges). Package vpp/nat44 plans, compares and talks to VPP.
//
// The adapter is plain data that belongs to the actor of its render.Driver.
package nat44
