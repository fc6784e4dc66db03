// Package actorstest is the stage of the tests of the whole troupe: one cluster in memory (Source),
// one simulated VPP, and the troupe between them (World), as production builds it: the source runs
// in kube/relay, behind kube/mirror where a test wants that, and actors.Tree makes the actors.
//
// A World runs on the real dispatcher, with VPP behind its socket, or in virtual time on a seeded
// runtime.Sim, with the connection of vpp/virtual. The helpers are the same: a test changes the
// Source, waits (Until, Settled, Quiet), and looks at VPP and at what the actors answer.
//
// # Concurrency
//
// In virtual time everything belongs to the goroutine of the test. On the real dispatcher a World
// belongs to the goroutine of the test as well, and a Source may be changed by any.
package actorstest
