// Package render is the renderer: one Driver for all of them, and an Adapter for each kind of
// object in VPP (render/nat44, render/cnat, render/routes).
//
//	Adapter   Plan, Actual, Apply: pure, or a thin call; abilities that only some have
//	Claims    wishes of the services for objects, their owners, and the changed objects
//	Driver    everything else, once: work queue, back-off and half-open probes, barrier,
//	          acknowledgements, drift checks, batches, the connection to VPP, health, the
//	          operation log
//
// # One pass
//
//	Render -> Adapter.Plan -> Claims -> objects in the queue -> Gate -> Work -> VPP
//	                                          ^                           |
//	                  Adapter.Adopt <- Reader |---- Cost = 0? <- Record <-|
//
// # The port
//
// An Adapter has ten methods. Plan takes views and surroundings. Actual reads, adopts and forgets
// the content of VPP, lists it, estimates the cost of an object and computes the difference to a
// reading. Apply returns operations and records their results. Claims tell the Driver which wanted
// values have changed, so an Adapter returns no lists of changes. Features of single adapters are
// abilities (abilities.go): settings, roles of interfaces, gates, rows for operators, warnings,
// messages, clean-up. The Driver finds out the abilities of its adapter when it is made (port.go).
//
// A new renderer is a package with an Adapter, a package below vpp/ and one line in actors/tree.go.
// Order, health, commands, clean-up and the simulation follow from the tree. Example:
// rendertest/toy, vpp/toytest and a line in actors/renderer_test.go. Where needed, add settings
// (bootstrap/config), an entry in vpp/features, guards of inputs that crash VPP (vpp/link), and
// messages of the simulated VPP.
//
// # Ownership and ordering
//
// A Driver and its Adapter belong to one actor. Only functions that talk to VPP run in other
// goroutines, which belong to the incarnation. One read or batch is under way at a time. Results of
// an earlier connection are ignored. Objects of an earlier run are removed when every service of
// the last Begin has rendered the generation in it (the barrier).
//
// A large view takes long to plan. It waits until the messages behind it have been handled, and its
// namespace has its turn. A Begin is handled after all views before it.
//
// A Driver is started by the tree of package actors. Stop changes nothing in VPP.
package render
