// Package client queries a running agent through its HTTP server (package api): over TCP,
// read-only, or over the control socket.
//
// A Client is safe for concurrent use. It starts no goroutine that outlives a call.
package client
