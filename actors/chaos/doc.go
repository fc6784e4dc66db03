// Package chaos plays the whole troupe in a simulation: the production actors in virtual time on
// one goroutine, between a simulated API server, a simulated VPP and a simulated store of node IDs,
// all of which fail in every way that the fault table knows.
//
// It owns the simulated surroundings, the faults, the model that says what must be true, and the
// search for the smallest plan that breaks it. It owns nothing of the troupe: it builds actors.Tree
// with actors.Deps, as the agent does. Only bootstrap and tests call it.
//
//	Campaign     many seeds, on several processors; of those that are over it keeps sums, and the
//	             plans of the first that failed
//	  Run        one seed: plan -> world -> faults -> quiet -> drills -> shutdown
//	    plan     what will happen and when: a list, so that it can be made smaller
//	    world    the surroundings and the troupe
//	    model    what a node has to serve, computed from the cluster alone: neither kube/service
//	             nor vpp/nat44 is asked
//	    check    VPP, the actors and what they say, against the model
//
// A seed decides everything: same seed, same trace, on every machine. A change that depends on the
// order of maps, uses the clock of the machine or the global random source in an actor finds that
// out here.
//
// The tests play the same plans, faults and model on the dispatcher of production as well
// (TestOnDispatcher): real goroutines, the real connection to the simulated VPP, a clock that runs
// fast. That is for the race detector and for what is left over; nothing of it is repeatable but
// the plan.
//
// Values belong to the goroutine that runs the seed; Campaign runs several of them side by side and
// they share nothing. Run returns when all actors and their functions have ended.
package chaos
