// Package render is the renderer: one Driver for all of them, and an Adapter for each kind of
// object in VPP (render/nat44, render/cnat, render/routes).
//
//	Adapter   plan, read, diff, apply, whose object it is: pure, or a thin call
//	Driver    everything else, once: claims, work queue, back-off and half-open probes, barrier,
//	          acknowledgements, drift checks, batches, the session with VPP, health, the operation
//	          log
//
// # One pass
//
//	Render -> Adapter.Plan -> Claims -> objects in the queue -> Gate -> Work.Apply -> VPP
//	                                          ^                            |
//	                  Adapter.Adopt <- Reader |----- InSync? <- Record <---|
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
