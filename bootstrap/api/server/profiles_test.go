package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

// TestProfilesAreOnTheControlSocketOnly: they show memory and cost time.
func TestProfilesAreOnTheControlSocketOnly(t *testing.T) {
	a := apitest.Start(t, apitest.New(0), nil)
	for _, target := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/heap?debug=1"} {
		if code, body, _ := call(t, control(a), http.MethodGet, target, ""); code != http.StatusOK || !strings.Contains(body, "goroutine") && !strings.Contains(body, "heap profile") {
			t.Errorf("%s: %d %.200s", target, code, body)
		}
		if code, _, _ := call(t, tcp(a), http.MethodGet, target, ""); code != http.StatusNotFound {
			t.Errorf("%s over TCP: %d", target, code)
		}
	}
}
