package server

import (
	"fmt"
	"net/http"
)

// ForNetwork answers /metrics, /livez and /readyz without details, for the monitoring of a cluster
// and for kubelets.
func ForNetwork(metrics http.Handler, ready func() bool) http.Handler {
	only := http.NewServeMux()
	only.Handle("GET /metrics", metrics)
	only.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	only.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return only
}
