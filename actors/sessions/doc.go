// Package sessions is the actor for the housekeeping of NAT sessions: it frees expired sessions,
// raises their limit and raises an alarm before the table is full. vpp/sessions decides what to do,
// as a pure policy.
//
// Nothing depends on the actor: it has a supervisor of its own without a budget, its health is a
// warning only, and its end changes nothing in VPP. Requests to VPP run in goroutines of the actor,
// one at a time.
package sessions
