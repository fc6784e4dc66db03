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
// # Ownership and ordering
//
// A Driver and its Adapter belong to one actor; only the functions and values that an Adapter
// returns for VPP run elsewhere, in goroutines of the incarnation. There is one read or batch under
// way at a time, and its results are ignored if they are of an earlier connection. Objects of an
// earlier run are removed when every service of the last Begin has rendered the generation in it
// (the barrier).
//
// A Driver is started by the tree of package actors. Stop changes nothing in VPP.
package render
