// Package rendertest is the stage for tests of renderers: one renderer is real, the other actors are extras that remember what they were sent, and VPP is
// a simulated one behind a connection whose faults the test decides.
//
// A Stage runs on the goroutine of its test, in virtual time: the same test takes the same steps each time. It starts no goroutine.
package rendertest
