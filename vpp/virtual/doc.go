// Package virtual connects a simulated VPP without a socket, in virtual time, with the faults that a connection can have. It is for simulations
// of the whole agent; tests of the link itself use the socket of vpp/simulator.
//
// A Stream belongs to the one goroutine on which its Time lets everybody work, in turn. There is nothing to shut down but its VPP.
package virtual
