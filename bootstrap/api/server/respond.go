package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

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

// write answers with JSON. It encodes first, so that an encoding error can still be a 500.
func write(w http.ResponseWriter, code int, value any) {
	body, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		code, body = http.StatusInternalServerError, []byte(`{"error": "the answer has no JSON form"}`)
	}
	body = append(body, '\n')
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// writeText answers with plain text.
func writeText(w http.ResponseWriter, code int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}

// status returns the HTTP status of an error.
func status(err error) int {
	var tooLarge *http.MaxBytesError
	for _, known := range []struct {
		is   bool
		code int
	}{
		{errors.As(err, &tooLarge), http.StatusRequestEntityTooLarge},
		{errors.Is(err, errQuery), http.StatusBadRequest},
		{errors.Is(err, api.ErrInvalid), http.StatusBadRequest},
		{errors.Is(err, api.ErrForbidden), http.StatusForbidden},
		{errors.Is(err, api.ErrNotFound), http.StatusNotFound},
		{errors.Is(err, api.ErrConflict), http.StatusConflict},
		{errors.Is(err, api.ErrUnsupported), http.StatusNotImplemented},
		{errors.Is(err, api.ErrUnavailable), http.StatusServiceUnavailable},
		{errors.Is(err, context.DeadlineExceeded), http.StatusGatewayTimeout},
		{errors.Is(err, context.Canceled), http.StatusServiceUnavailable},
	} {
		if known.is {
			return known.code
		}
	}
	return http.StatusInternalServerError
}
