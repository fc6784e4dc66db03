// Package render is the renderer: one Driver for all of them, and a Kind for each kind of
// object in VPP (render/nat44, render/cnat, render/routes).
//
//	Kind      Plan, Next, Work, Record, Adopt: pure, or a thin call
//	Claims    wishes of the services for objects, their owners, and the changed objects
//	Driver    everything else, once: work queue, back-off and half-open probes, barrier,
//	          acknowledgements, drift checks, batches, the connection to VPP, health, the
//	          operation log
//
// # One pass
//
//	Render -> Kind.Plan -> Claims -> objects in the queue -> Kind.Next -> Kind.Work -> VPP
//	                                        ^                                           |
//	                   Kind.Adopt <- Reader |--------- Kind.Next: no cost <--- Record <-|
//
// # A kind of object
//
// Plan takes a view, Settle the surroundings and the phase of the barrier. Next compares one object
// and returns a Step: the operations with their cost, whether the object may be changed now, and
// the memory that it needs. The Driver chooses steps, Work adds settings and puts them in order,
// Record takes the results. Reader, Adopt and Forget are about the content of VPP. Claims tell the
// Driver which wanted values have changed.
//
// A new renderer is a package with a Kind, a package below vpp/ and one line in actors/tree.go.
// Order, health, commands, clean-up and the simulation follow from the tree. Example: toytest and a
// line in actors/renderer_test.go. Where needed, add settings (bootstrap/config), an entry in
// vpp/features, guards of inputs that crash VPP (vpp/link), and messages of the simulated VPP.
//
// # Ownership and ordering
//
// A Driver and its Kind belong to one actor. Only functions that talk to VPP run in other
// goroutines, which belong to the incarnation. One read or batch is under way at a time. Results of
// an earlier connection are ignored. Objects of an earlier run are removed when every service of
// the last Begin has rendered the generation in it (the barrier).
//
// A large view takes long to plan. It waits until the messages behind it have been handled, and its
// namespace has its turn. A Begin is handled after all views before it.
//
// A Driver is started by the tree of package actors. Stop changes nothing in VPP.
package render
