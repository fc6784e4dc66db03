// Package live lets actors of a running agent fail on purpose: single faults by hand, and drills that follow a plan while invariants are
// evaluated. The agent makes a Live only when it was started with --enable-chaos; without one the runtime has no hooks, so nothing of this
// package runs.
//
//	Policy   which faults are armed: the hooks of the runtime, one look at an atomic pointer for a message
//	Live     the desk: resolves targets, refuses what must not be, ends faults at their deadline, keeps the audit record
//	Plan     what a drill does; a run chooses faults and targets by its seed
//	judge    pure: samples of the agent -> which invariant (I1 to I14) holds
//
// # What is refused
//
// The root, the journal and chaos itself are exempt. Supervisors can be killed and can panic, but neither be suspended nor lose messages: what
// they and their children tell each other does not leave the runtime. Every fault has a deadline; only so many last at a time; injected
// failures stay below the budgets of the supervisors, so that a drill never ends the process.
//
// # Audit
//
// Who did what, when, and what came of it is a Record, an entry of the journal (kind "drill") and a line in the log. The outcome is found out
// by watching until the agent is as well as it was before: readiness, every service, and VPP read back.
//
// # Concurrency and shutdown
//
// All methods of Live and Policy are safe for concurrent use. Hooks run in the goroutines of actors and never block. Live owns its goroutines;
// Close ends every fault and waits for them.
package live
