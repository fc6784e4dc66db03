package server

import (
	"context"
	"net"
	"net/http"
)

// Audit is the record of one state-changing call that the control socket has answered.
type Audit struct {
	// Who is the client, as PeerOf names it: "uid 0, pid 4711".
	Who string
	// Method and Path of the request, Status of the answer.
	Method, Path string
	Status       int
}

// guard restricts state-changing calls to the control socket and records them.
type guard struct {
	*Server
	control bool
}

func (g guard) only(fn http.HandlerFunc) http.HandlerFunc {
	if !g.control {
		return func(w http.ResponseWriter, _ *http.Request) {
			fail(w, http.StatusForbidden, "this listener is read-only: use the control socket")
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		// the status if the handler panics
		status := &statusWriter{ResponseWriter: w, status: http.StatusInternalServerError}
		defer func() {
			if g.cfg.Audit != nil {
				g.cfg.Audit(Audit{Who: PeerOf(r.Context()), Method: r.Method, Path: short(r.URL.Path), Status: status.status})
			}
		}()
		fn(status, r)
	}
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(code int) {
	w.status = code
	w.ResponseWriter.WriteHeader(code)
}

// peerKey is the key of the peer in the context of a request.
type peerKey struct{}

// withPeer adds the peer of a connection to its context.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerName(c))
}

// PeerOf returns the peer of a request for audit records: "uid 0, pid 4711" on the control socket,
// from the kernel, an address otherwise.
func PeerOf(ctx context.Context) string {
	if who, ok := ctx.Value(peerKey{}).(string); ok {
		return who
	}
	return "unknown"
}

// peerName returns the credentials of the peer if the kernel has them, its address otherwise.
func peerName(c net.Conn) string {
	if unix, ok := c.(*net.UnixConn); ok {
		if who := credentials(unix); who != "" {
			return who
		}
		return "the control socket"
	}
	return c.RemoteAddr().String()
}
