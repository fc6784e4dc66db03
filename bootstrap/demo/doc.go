// Package demo runs the whole agent in one process and proves that it works: an embedded etcd, a simulated VPP behind a real binary-API
// socket, and a small cluster read from YAML. It programs every service, sends probe packets and compares where they arrive with what
// Kubernetes says, kills actors and counts what VPP notices of it.
//
// Run is called once, from the goroutine of the command; it returns when the proof is done (Options.Exit) or when its context ends.
package demo
