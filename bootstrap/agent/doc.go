// Package agent wires one running agent: it makes the components from the configuration, and starts
// and stops them in order.
//
// # Start
//
// Built with the tag agent, for the image, it has neither an embedded etcd nor a simulated VPP, and
// Start refuses to be configured for them.
//
// Steps that can fail for good come first: the HTTP listeners, the configuration, the directory of
// an embedded etcd. A second agent on a node, started by mistake, ends there and has changed
// nothing. Then follow the embedded etcd (in the background) and the simulated VPP, if they are
// configured, then the actors, then the handlers of the HTTP servers. No step waits for a
// dependency that is down: the actors report it and retry. The health port for load balancers opens
// last, when the actors can answer; while another process (a kube-proxy) has the port, the agent
// retries.
//
// # Stop
//
// In reverse order: HTTP servers, actors (leaves first, each with its goroutines), then their
// dependencies. Every step has a deadline, after which the next one begins. VPP keeps forwarding,
// unless cleanupOnExit is set.
//
// # Concurrency
//
// Start, Wait and Close of an Agent belong to one goroutine; all other methods are safe from any
// goroutine between Start and Close.
package agent
