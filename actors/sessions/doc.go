// Package sessions is the actor for the housekeeping of NAT sessions. It frees expired sessions,
// raises their limit and gives an alarm before the table is full. vpp/sessions decides, as a pure
// policy.
//
// Nothing depends on the actor. It has its own supervisor without a budget, its health is a warning
// only, and its end changes nothing in VPP. Requests to VPP run in goroutines of the actor, one at
// a time.
package sessions
