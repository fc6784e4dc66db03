// Package link is the actor that owns the connection to VPP and reports it to the dataplane.
//
// The connection runs in a goroutine of the actor and ends with the incarnation. Requests to VPP do
// not pass through the actor: other actors call Link.Do from their own goroutines. The state goes
// to Config.Receivers when it changes, and when one of them asks (Resync).
package link
