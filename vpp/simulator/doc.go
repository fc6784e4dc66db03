// Package simulator is a simulated FD.io VPP 25.10 behind a real binary-API unix socket.
//
// It is a semantic model, never a recorder of calls, of the requests that the agent or the contract
// suite sends; others are answered with "unimplemented". A request changes the state that VPP would
// change, is answered with the return code that VPP would give, has VPP's destructive side effects
// (deleting one backend ends the sessions of every service that shares it), and the inputs that
// crash VPP crash the simulator too: all sockets close, all state is gone, and the next incarnation
// comes up with other message ids and another pid. The packet oracle (VPP.Send, VPP.Reply) pushes
// packets through the same state and answers "where does this packet go, and translated how?".
//
// # Use
//
// It takes the place of VPP in the tests of the other packages of vpp, in the demo and the
// simulator command, and without its socket in the simulation of the whole agent (vpp/virtual). It
// does not depend on Kubernetes, actors or the agent. Clients connect with GoVPP (or another client
// of the protocol) over the socket; tests and demos build a topology and read the state through the
// Go API of VPP. All exported methods are safe for concurrent use.
//
// # Ordering
//
// One mutex guards the whole model, as one main thread serves all API clients of a real VPP. The
// requests of one connection are executed in the order in which they were written, each request is
// answered before the next one is looked at, and requests of different connections interleave in
// arrival order. Packets of the oracle are executed between requests. Nothing is sent or received
// while the mutex is held: replies go to a per-connection output queue which a writer goroutine
// drains.
//
// # Layout
//
// Arrows point down only:
//
//	simulator   the VPP value: incarnations, sockets, the statistics segment, faults, topology and
//	            packets for tests
//	model       one incarnation: network and plugins, the graph that a packet takes, and the
//	            requests of the binary API that are executed on it, with their encoding
//	nat, cnat   plugins; that of access lists is a part of model
//	vnet        interfaces, addresses, neighbours, forwarding tables and sources of routes, feature
//	            arcs, VPP's allocator, return codes, packets and verdicts
//
// CNAT translates the packets of interfaces that have its feature nodes.
//
// # Shutdown
//
// Close stops the listener, closes every connection, waits for every goroutine and removes the
// socket file. Crash leaves the socket file behind, as a crashed VPP does.
package simulator
