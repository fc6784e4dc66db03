// Package agent wires one running agent: configuration to parts, parts to the troupe, and the order in which they start and stop.
//
// # Start
//
// First everything that can only fail at once is taken: the HTTP listeners, the configuration, the directory of an embedded etcd. An agent
// that was started twice by mistake ends there and has touched nothing. Then the embedded etcd (in the background) and the simulated VPP,
// each only where asked for, then the actors, then the answers of the HTTP servers. Nothing waits for a dependency that is not there: the
// actors report it and go on trying. The same is true of the port on which load balancers ask for the health of the node: a kube-proxy that
// still has it is waited for, and it is opened last, when there is somebody to answer.
//
// # Stop
//
// From the outside in: HTTP servers, actors (leaves first, each with its goroutines), then what they used. Every step has a deadline, and
// the next one is taken in any case. VPP goes on forwarding, unless the configuration asks for clean-up.
//
// # Concurrency
//
// Start, Wait and Close of an Agent belong to one goroutine; everything else of it may be used from any goroutine between Start and Close.
package agent
