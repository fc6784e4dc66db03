package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

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
