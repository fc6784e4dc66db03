package server

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
)

// Handler is the handler of one of the listeners, for tests that need no socket. The requests come
// over loopback.
func (s *Server) Handler(control bool) http.Handler {
	return s.HandlerBetween("127.0.0.1:40000", "127.0.0.1:9990", control)
}

// HandlerBetween is Handler for connections with these ends.
func (s *Server) HandlerBetween(remote, local string, control bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(local))
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
		r.RemoteAddr = remote
		s.handler(control).ServeHTTP(w, r)
	})
}

// Routes are the methods of each path of the control socket, which the OpenAPI document describes.
func (s *Server) Routes() map[string][]string {
	out := map[string][]string{}
	for path, resource := range s.resources(true) {
		out[path] = slices.Sorted(maps.Keys(resource))
	}
	return out
}
