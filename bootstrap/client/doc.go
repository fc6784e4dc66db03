// Package client asks a running agent through its HTTP server (package api): over TCP, read-only, or over the control socket.
//
// A Client may be used by any number of goroutines. It starts none that outlives a call.
package client
