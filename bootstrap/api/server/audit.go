package server

import (
	"net/http"

	"github.com/troupe-vpp/troupe/bootstrap/api/peer"
)

// Audit is the record of one state-changing call that the control socket has answered.
type Audit struct {
	// Who is the client, as package peer names it: "uid 0, pid 4711".
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
				g.cfg.Audit(Audit{Who: peer.Of(r.Context()), Method: r.Method, Path: short(r.URL.Path), Status: status.status})
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

// WriteHeader satisfies http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	w.status = code
	w.ResponseWriter.WriteHeader(code)
}
