// Package etcd has a client of etcd as the agent is configured, a follower of the documents under a
// prefix, and an etcd inside this process: a cluster of one member for a single node, a demo or a
// test.
//
// An Embedded owns its data directory, which it locks, its socket and its goroutines; Close stops
// it, in CloseTimeout at most. Its methods are safe from any goroutine. Package bootstrap/agent
// makes the client and starts the etcd; package cluster only uses the client. Documents runs in the
// goroutine of its caller until the context ends. Built with the tag agent, for the image, the
// package has no server.
package etcd
