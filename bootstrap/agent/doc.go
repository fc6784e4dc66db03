// Package agent wires one running agent: configuration to parts, parts to the troupe, and the order in which they start and stop.
//
// # Start
//
// embedded etcd, simulated VPP (each only where asked for), then the actors, then the HTTP servers. Nothing waits for a dependency that is
// not there: the actors report it and go on trying.
//
// # Stop
//
// From the outside in: HTTP servers, actors (leaves first, each with its goroutines), then what they used. Every step has a deadline, and
// the next one is taken in any case. VPP goes on forwarding, unless the configuration asks for clean-up.
//
// An Agent belongs to the goroutine that calls its Run; everything else of it may be used from any goroutine while Run is under way.
package agent
