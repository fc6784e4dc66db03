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
