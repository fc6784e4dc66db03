// Package actorstest is the stage of the tests of the whole troupe: one cluster in memory (Source),
// one simulated VPP, and the troupe between them (World). The troupe is built as in production: the
// source runs in kube.Relay, behind kube/mirror if a test wants it, and actors.Tree makes the
// actors.
//
// A World runs on the real dispatcher, with VPP behind its socket, or in virtual time on a seeded
// runtime.Sim, with the connection of vpp/virtual. The helpers are the same: a test changes the
// Source, waits (Until, Settled, Quiet), and checks VPP and the answers of the actors.
//
// # Concurrency
//
// In virtual time everything belongs to the goroutine of the test. On the real dispatcher a World
// belongs to the goroutine of the test as well, and a Source may be changed by any.
package actorstest
