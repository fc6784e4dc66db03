package agent

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHostRoutes: a route of the host that is missing does not make the node unready; readiness and
// metrics say so.
func TestHostRoutes(t *testing.T) {
	cfg := everything(t)
	cfg.Services.ServiceCIDRs = []string{"10.96.0.0/12"}
	cfg.HostRoute.Interface, cfg.HostRoute.Gateway = "no-such-link", "172.30.0.1"
	a := run(t, cfg)
	ready(t, a)
	get := func(path string) string {
		answer := httptest.NewRecorder()
		a.Metrics().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		return answer.Body.String()
	}
	eventually(t, "the missing interface is reported", func() bool {
		for _, p := range a.backend.Readiness().Parts {
			if p.Name == "host-route" {
				return p.OK && strings.HasPrefix(p.Reason, "interface no-such-link of the host: ")
			}
		}
		return false
	})
	for _, want := range []string{`troupe_host_routes{state="failed"} 1`, `troupe_host_routes{state="kept"} 0`, `troupe_host_routes{state="foreign"} 0`} {
		if !strings.Contains(get("/metrics"), want+"\n") {
			t.Errorf("no metric %s", want)
		}
	}
}
