// Package live injects faults into actors of a running agent: single faults on request, and drills
// that follow a plan and evaluate invariants. The agent creates a Live only with --enable-chaos;
// without one the runtime has no hooks, and no code of this package runs.
//
//	kinds        the table of fault kinds, with parameters: all else about a kind is derived from
//	             its entry
//	Policy       the armed faults: the hooks of the runtime, which load one atomic pointer for
//	             each message
//	Live         finds the target, enforces exemptions and limits, ends faults at their deadline,
//	             keeps the audit record
//	Plan         the faults of a drill; a run draws faults and targets by its seed
//	judge        pure: samples of the agent -> which invariant (I1 to I14) holds
//
// # Exemptions and limits
//
// The root, the journal and chaos itself are exempt. Supervisors can be killed and can panic, but
// not be suspended or lose messages: the messages between a supervisor and its children do not pass
// the hooks. Every fault has a deadline; the number of active faults is limited; injected failures
// stay below the restart budgets of supervisors, so that a drill never ends the process.
//
// # Audit
//
// Each fault is a Record, two events of the journal (kind "drill") and two lines in the log: who
// injected which fault when, and its outcome. To find the outcome, Live observes the agent until
// readiness, every service and VPP, read back, are as they were before.
//
// # Concurrency and shutdown
//
// All methods of Live and Policy are safe for concurrent use. Hooks run in the goroutines of actors
// and never block. Close ends every fault and waits for the goroutines of Live.
package live
