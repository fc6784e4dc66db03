package api

import (
	"context"
	"net"
)

// peerKey finds the peer of a request in its context.
type peerKey struct{}

// withPeer notes who is at the other end of a connection.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerOf(c))
}

// Peer says who is at the other end of the connection of a request, for audit records: "uid 0, pid 4711" on the control socket as the kernel
// knows it, an address elsewhere.
func Peer(ctx context.Context) string {
	if who, ok := ctx.Value(peerKey{}).(string); ok {
		return who
	}
	return "somebody"
}

// peerOf asks the kernel, where it tells.
func peerOf(c net.Conn) string {
	if unix, ok := c.(*net.UnixConn); ok {
		if who := credentials(unix); who != "" {
			return who
		}
		return "the control socket"
	}
	return c.RemoteAddr().String()
}
