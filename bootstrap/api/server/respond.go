package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// respond answers with a value as JSON, or with an error.
func respond(w http.ResponseWriter, value any, err error) {
	if err != nil {
		fail(w, status(err), err.Error())
		return
	}
	write(w, http.StatusOK, value)
}

// fail answers with an error.
func fail(w http.ResponseWriter, code int, text string) { write(w, code, api.Error{Error: text}) }

// accepted answers 202 with a value, or with an error.
func accepted(w http.ResponseWriter, value any, err error) {
	if err != nil {
		respond(w, nil, err)
		return
	}
	write(w, http.StatusAccepted, value)
}

// write answers with JSON. It encodes first, so that an encoding error can still be a 500.
func write(w http.ResponseWriter, code int, value any) {
	body, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		code, body = http.StatusInternalServerError, []byte(`{"error": "the answer has no JSON form"}`)
	}
	send(w, code, "application/json", "no-store", append(body, '\n'))
}

// writeText answers with plain text.
func writeText(w http.ResponseWriter, code int, text string) {
	send(w, code, "text/plain; charset=utf-8", "no-store", []byte(text))
}

// describe answers with the OpenAPI document.
func describe(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, "application/json", "no-cache", api.OpenAPI())
}

// send answers with a body of this type.
func send(w http.ResponseWriter, code int, kind, cache string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", cache)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// status returns the HTTP status of an error.
func status(err error) int {
	var tooLarge *http.MaxBytesError
	switch code := api.Code(err); {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errQuery):
		return http.StatusBadRequest
	case code != 0:
		return code
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// livez answers whether the process must be restarted.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) {
	code, text := http.StatusOK, "ok\n"
	if err := s.process.Live(); err != nil {
		code, text = http.StatusServiceUnavailable, "not live: "+err.Error()+"\n"
	}
	s.cfg.observe("livez", code)
	writeText(w, code, text)
}

// readyz answers whether VPP is in the desired state, with ?verbose for each part. Parts that
// failed are always listed.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ready := s.process.Readiness()
	code := http.StatusOK
	if !ready.Ready {
		code = http.StatusServiceUnavailable
	}
	verbose := r.URL.Query().Has("verbose")
	s.cfg.observe("readyz", code)
	writeText(w, code, readyText(ready, verbose))
}

// readyText is the answer of readyz, one line for each part as in Kubernetes: "[+]watch ok",
// "[-]link failed: reason".
func readyText(ready api.Readiness, verbose bool) string {
	var b strings.Builder
	for _, p := range ready.Parts {
		switch {
		case !p.OK:
			fmt.Fprintf(&b, "[-]%s failed: %s\n", p.Name, p.Reason)
		case verbose && p.Reason != "":
			fmt.Fprintf(&b, "[+]%s ok: %s\n", p.Name, p.Reason)
		case verbose:
			fmt.Fprintf(&b, "[+]%s ok\n", p.Name)
		}
	}
	switch {
	case !ready.Ready:
		b.WriteString("not ready\n")
	case verbose:
		b.WriteString("ready\n")
	default:
		return "ok\n"
	}
	return b.String()
}
