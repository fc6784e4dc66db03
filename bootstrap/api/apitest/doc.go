// Package apitest is a test kit for clients of the agent's HTTP server: a Backend that behaves like
// a small agent, and a server that runs it on real sockets.
//
// It is used by tests only. Troupe is safe for concurrent use; Start stops its server when the test
// ends.
package apitest
