// Package sessions keeps VPP's table of NAT44-ED sessions from filling up. VPP frees an expired
// session only when a packet needs its place: once the table is full, new connections to services
// are refused although every entry may have expired long ago.
//
//	Decide   the policy, pure: survey the table, free expired sessions, raise the limit, raise an
//	         alarm, or nothing
//	Reader   usage from the statistics segment of VPP, which costs VPP nothing
//	Ask      the same by the binary API, where there is no statistics socket
//	Survey   limit, protocols and expired sessions: one pass of VPP over its sessions
//	Free     finds and deletes expired sessions, in one bounded slice
//	Raise    sets a higher limit
//	List     the sessions of some backends
//	LookCNAT, DecideCNAT
//	         sessions and source ports of CNAT, which are only counted
//
// # Ownership
//
// The session limit of a running VPP belongs to the user of this package, the actor "sessions". The
// renderer (vpp/nat44) only sets the number of sessions with which the plugin is enabled; it never
// changes the limit afterwards. The limit is never lowered.
//
// # Cost for VPP
//
// Dumps, surveys and deletions run on VPP's main thread with the workers stopped. A survey and a
// dump of the users visit every session once; a dump of the sessions of one user visits every
// session too. So Decide requests few surveys, Free makes a few dumps at a time, and deletions are
// limited per slice. The caller must pause between slices, so that the workers forward in between.
//
// Functions that send requests take a link.Caller, block until VPP has answered or ctx ends, and
// may be called from any goroutine. They leave no goroutine behind, except a Reader whose VPP does
// not answer.
package sessions
