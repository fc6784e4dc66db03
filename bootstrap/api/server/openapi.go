package server

import (
	"net/http"
	"strconv"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// describe answers with the OpenAPI document.
func describe(w http.ResponseWriter, _ *http.Request) {
	document := api.OpenAPI()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(document)))
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(document) // a client that is gone needs no answer
}
