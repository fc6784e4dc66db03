// Package chaos simulates the agent: the production actors run in virtual time on one goroutine.
// The API server, VPP, the disk and the store of node IDs are simulated, and fail in all ways of
// the fault table.
//
// The package owns the simulated surroundings, the faults, the model of the expected state, and the
// search for the smallest failing plan. It has no code of the agent: it builds actors.Tree with
// actors.Deps, as the agent does. Only bootstrap/cli/simulated and tests call it.
//
//	Campaign     many seeds, on several processors
//	  Run        one seed: plan -> world -> faults -> quiet -> drills -> shutdown
//	    plan     all changes and faults with their times: a list, so that Minimise can shorten it
//	    faults   the table of faults: all else about a kind is derived from its entry
//	    world    the surroundings and the actors
//	    model    the expected state, computed from the cluster alone, without kube/service and
//	             vpp/nat44
//	    check    compares VPP, the actors and their answers with the model
//
// # Seeds
//
// A seed decides everything: the same seed has the same trace on every machine. An actor must not
// depend on the order of a map, the clock of the machine or the global random source: the traces
// would differ.
//
// Drills on a running agent are in chaos/live. Operators write their plans, which hit actors only.
// A simulation also breaks the surroundings, and draws the details of every fault from its seed.
//
// # Worlds with threads
//
// TestOnDispatcher plays the same plans, faults and model on the production dispatcher: with real
// goroutines, the real connection to the simulated VPP and a fast clock. It is for the race
// detector and for leaks; only the plan is repeatable.
//
// # Concurrency and shutdown
//
// A world belongs to the goroutine that runs its seed; seeds share nothing. Run returns when all
// actors and their functions have ended.
package chaos
