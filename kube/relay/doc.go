// Package relay runs the Kubernetes source for the life of the process and passes its deliveries to
// one listener at a time: the watch actor. Knowledge of the cluster outlives a restart of the
// watch, which therefore costs the API server nothing.
//
//	source -> Observer (bootstrap: metrics, simulated CNI, journal) -> listener (watch actor)
//
// # Concurrency
//
// The relay starts no goroutine and waits for nothing, so it works in a simulation on one goroutine
// as well. Its lock is held while the listener is called, which must not block.
package relay
