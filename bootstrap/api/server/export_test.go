package server

import (
	"maps"
	"net/http"
	"slices"
)

// Handler is the handler of one of the listeners, for tests that need no socket.
func (s *Server) Handler(control bool) http.Handler { return s.handler(control) }

// Routes are the methods of each path of the control socket, which the OpenAPI document describes.
func (s *Server) Routes() map[string][]string {
	out := map[string][]string{}
	for path, resource := range s.resources(true) {
		out[path] = slices.Sorted(maps.Keys(resource))
	}
	return out
}
