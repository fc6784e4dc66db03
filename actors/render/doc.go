// Package render is the renderer: one Driver for all of them, and an Adapter for each kind of
// object in VPP (render/nat44, render/cnat, render/routes).
//
//	Adapter   Plan, Actual, Apply: pure, or a thin call; abilities that only some have
//	Claims    which service wants which object, whose it is, of which something else is wanted now
//	Driver    everything else, once: work queue, back-off and half-open probes, barrier,
//	          acknowledgements, drift checks, batches, the session with VPP, health, the operation
//	          log
//
// # One pass
//
//	Render -> Adapter.Plan -> Claims -> objects in the queue -> Gate -> Work -> VPP
//	                                          ^                           |
//	                  Adapter.Adopt <- Reader |---- Cost = 0? <- Record <-|
//
// # The port
//
// An Adapter has ten methods: Plan (what a service, and the surroundings, ask for), Actual (read
// VPP, adopt it, forget it, what it holds, what an object would cost, the difference to a reading)
// and Apply (operations, what became of them). Claims tell the Driver of which objects something
// else is wanted, so an Adapter returns no lists of changes. What only some adapters have is an
// ability (abilities.go): settings, roles of interfaces, gates, rows for operators, warnings,
// messages of their own, clean-up. The Driver finds out once, when it is made, which of them an
// adapter has.
//
// A new renderer is a package with an Adapter, a package below vpp/ and one line in actors/tree.go:
// order, health, commands, clean-up and the simulation follow from the tree. rendertest/toy and
// vpp/toytest are one; actors/renderer_test.go has its line. Settings (bootstrap/config), an entry
// in vpp/features, guards of inputs that crash VPP (vpp/link) and messages that the simulated VPP
// does not have come to it where there are any.
//
// # Ownership and ordering
//
// A Driver and its Adapter belong to one actor; only the functions and values that an Adapter
// returns for VPP run elsewhere, in goroutines of the incarnation. There is one read or batch under
// way at a time, and its results are ignored if they are of an earlier connection. Objects of an
// earlier run are removed when every service of the last Begin has rendered the generation in it
// (the barrier).
//
// A large view takes long to plan. It waits until the messages behind it have been handled, in the
// turns of its namespace; a Begin is handled after all views that came before it.
//
// A Driver is started by the tree of package actors. Stop changes nothing in VPP.
package render
