package peer

import (
	"context"
	"net"
)

// key is the key of the peer in the context of a request.
type key struct{}

// With adds the peer of a connection to its context.
func With(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, nameOf(c))
}

// Of returns the peer of a request for audit records: "uid 0, pid 4711" on the control socket,
// from the kernel, an address otherwise.
func Of(ctx context.Context) string {
	if who, ok := ctx.Value(key{}).(string); ok {
		return who
	}
	return "unknown"
}

// nameOf returns the credentials of the peer if the kernel has them, its address otherwise.
func nameOf(c net.Conn) string {
	if unix, ok := c.(*net.UnixConn); ok {
		if who := credentials(unix); who != "" {
			return who
		}
		return "the control socket"
	}
	return c.RemoteAddr().String()
}
