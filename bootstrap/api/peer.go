package api

import (
	"context"
	"net"
)

// peerKey finds the peer of a request in its context.
type peerKey struct{}

// withPeer adds the peer of a connection to its context.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerOf(c))
}

// Peer returns the peer of a request for audit records: "uid 0, pid 4711" on the control socket,
// from the kernel, an address otherwise.
func Peer(ctx context.Context) string {
	if who, ok := ctx.Value(peerKey{}).(string); ok {
		return who
	}
	return "unknown"
}

// peerOf returns the credentials of the peer if the kernel has them, its address otherwise.
func peerOf(c net.Conn) string {
	if unix, ok := c.(*net.UnixConn); ok {
		if who := credentials(unix); who != "" {
			return who
		}
		return "the control socket"
	}
	return c.RemoteAddr().String()
}
