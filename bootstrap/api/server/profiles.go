package server

import (
	"net/http"
	"net/http/pprof"
)

// profiles adds /debug/pprof/ to the control socket. Goroutines have the label "actor" with the
// path of the actor they work for. The client chooses the duration of a profile, so these resources
// have no deadline.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
}
