package server_test

import (
	"net/http"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

// TestServiceSessions: clients on TCP share a reading of VPP, and cannot have it read again for
// another service at once; the control socket reads each time.
func TestServiceSessions(t *testing.T) {
	agent := apitest.New(3)
	a := apitest.Start(t, agent, nil)
	ask := func(client *http.Client, service string, want int) {
		t.Helper()
		code, body, _ := call(t, client, http.MethodGet, "/api/v1/services/shop/"+service+"/sessions", "")
		if code != want {
			t.Errorf("%s: %d %s", service, code, body)
		}
	}
	ask(tcp(a), "none", http.StatusNotFound) // shares nothing
	for range 3 {
		ask(tcp(a), "service-001", http.StatusOK)
	}
	ask(tcp(a), "service-002", http.StatusServiceUnavailable)
	if n := agent.Asked(); n != 2 {
		t.Errorf("VPP was asked %d times", n)
	}
	for range 3 {
		ask(control(a), "service-002", http.StatusOK)
	}
	ask(control(a), "none", http.StatusNotFound)
	if n := agent.Asked(); n != 6 {
		t.Errorf("VPP was asked %d times", n)
	}
}
