// Package relay runs the Kubernetes source for the life of the process and passes its deliveries to
// one listener at a time: the watch actor. The state of the cluster outlives a restart of the watch
// actor, so such a restart causes no request to the API server.
//
//	source -> Observer (bootstrap: metrics, simulated CNI, journal) -> listener (watch actor)
//
// # Concurrency
//
// The relay starts no goroutine and waits for nothing, so it also works in a simulation on one
// goroutine. It holds its lock while it calls the listener, so the listener must not block.
package relay
