// Package virtual connects a simulated VPP without a socket, in virtual time, with the faults that
// a connection can have. It is for simulations of the whole agent; tests of the link itself use the
// socket of vpp/simulator.
//
// A Stream belongs to the one goroutine on which its Time runs all functions in turn. Only its VPP
// has to be closed.
package virtual
