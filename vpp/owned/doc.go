// Package owned records which objects of VPP the agent has made where VPP keeps no mark of the
// owner: roles of interfaces, addresses of pools, nodes of CNAT. Rows, access lists, routes and
// source NAT of CNAT have tags, sources or marks instead and need no record. Only a recorded object
// is removed at the end of an agent (`troupe cleanup`, cleanupOnExit); without a record an object
// belongs to another client.
//
//	Objects   what a message about such an object is about
//	Record    the objects of one start of VPP, in a file
//	Watched   a connection to VPP that keeps the record
//
// The record is written before the message that makes an object is sent, so that a crash leaves no
// object of ours without it. An object that VPP refused leaves the record, and so does one that a
// reading of VPP does not show, and all of them at a restart of VPP. A Record has a lock and may be
// used by any goroutine; the package starts none.
package owned
