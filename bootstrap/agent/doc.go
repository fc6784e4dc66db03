// Package agent wires one running agent: it makes the components from the configuration, and starts
// and stops them in order.
//
// # Start
//
// The steps that can fail for good come first: the lock of the data directory, the HTTP listeners,
// the configuration, the directory of an embedded etcd. A second agent that is started on a node by
// mistake ends there and has changed nothing. The embedded etcd (in the background) and the
// simulated VPP follow, if they are configured, then the actors, then the handlers of the HTTP
// servers. No step waits for a dependency that is down: the actors report it and retry. The health
// port for load balancers opens last, when the actors can answer. While another process, such as
// kube-proxy, has the port, the agent retries.
//
// The build tag agent, for the image, leaves out the embedded etcd and the simulated VPP. Start
// then returns an error if the configuration asks for one of them.
//
// # Answers
//
// backend implements api.Backend: it queries the actors and translates their answers into the types
// of the API. A query that an actor answers from its memory is limited to 2 s. A query that reads
// VPP, and a command, end at the deadline of the caller.
//
// # Stop
//
// Close stops in reverse order: HTTP servers, actors (leaves first, each with its goroutines), then
// their dependencies. Every step has a deadline, after which the next step begins. VPP keeps
// forwarding, unless cleanupOnExit is set.
//
// # Concurrency
//
// Start, Wait and Close of an Agent belong to one goroutine; all other methods are safe from any
// goroutine between Start and Close.
package agent
