package api

import (
	_ "embed"
	"net/http"
	"slices"
	"strconv"
)

// description is the OpenAPI document of the agent. A test makes it from the types and compares it
// with the handlers.
//
//go:embed openapi.json
var description []byte

// OpenAPI returns the description of the API, an OpenAPI 3.1 document in JSON.
func OpenAPI() []byte { return slices.Clone(description) }

// describe answers with the description.
func describe(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(description)))
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(description) // a client that is gone needs no answer
}
