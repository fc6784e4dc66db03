package api

import "net/http"

// Handler is what one of the listeners answers, for tests that need no socket.
func (s *Server) Handler(control bool) http.Handler { return s.handler(control) }
