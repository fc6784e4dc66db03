package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

// TestChaosStatus holds the answer to each request about chaos, on each listener.
func TestChaosStatus(t *testing.T) {
	a := apitest.Start(t, apitest.New(3), nil)
	const kill = `{"fault": "kill", "actor": "agent/dataplane/nat44"}`
	for _, tt := range []struct {
		method, body string
		control      bool
		code         int
		want         string
	}{
		{"GET", "", false, 200, `"enabled": true`},
		{"HEAD", "", false, 200, ""},
		{"POST", kill, false, 403, "this listener is read-only: use the control socket"},
		{"DELETE", "", false, 403, "this listener is read-only"},
		{"PUT", kill, true, 405, "expected DELETE, GET, HEAD, OPTIONS, POST"},
		{"POST", kill, true, 202, `"actor": "agent/dataplane/nat44"`},
		{"POST", "", true, 400, "fault:"},
		{"POST", `{"fault": "dance", "actor": "x"}`, true, 400, `\"dance\" is not one of kill, panic`},
		{"POST", `{"fault": "kill", "actor": "agent"}`, true, 403, "exempt"},
		{"POST", `{"fault": "kill", "actor": "unknown"}`, true, 404, "unknown"},
		{"POST", `{"fault": "kill", "actor": "x", "force": true}`, true, 400, `unknown field`},
		{"POST", `{"fault": "suspend", "actor": "x", "for": "long"}`, true, 400, `is not a duration`},
		{"POST", `{"plan": {"faults": []}}`, true, 400, "faults: is empty"},
		{"POST", `{"plan": {"faults": [{"fault": "kill", "of": "service"}]}, "actor": "x"}`, true, 400, "expected a fault or a plan, not both"},
		{"POST", `{"plan": {"name": "n", "faults": [{"fault": "kill", "of": "service"}]}}`, true, 202, `"state": "passed"`},
		{"DELETE", "", true, 200, `"stopped": 0`},
	} {
		client := tcp(a)
		if tt.control {
			client = control(a)
		}
		code, body, _ := call(t, client, tt.method, "/api/v1/chaos", tt.body)
		if code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %q: %d %s, want %d and %q", tt.method, tt.body, code, body, tt.code, tt.want)
		}
	}
}

// TestPeer: the audit record has the credentials of the client of the control socket.
func TestPeer(t *testing.T) {
	a := apitest.Start(t, apitest.New(0), nil)
	_, body, _ := call(t, control(a), http.MethodPost, "/api/v1/chaos", `{"fault": "suspend", "actor": "agent/world"}`)
	var r live.Record
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("uid %d, pid %d", os.Getuid(), os.Getpid()); r.Who != want && r.Who != "the control socket" {
		t.Errorf("who: %q, want %q", r.Who, want)
	}
	if got := server.PeerOf(t.Context()); got != "unknown" {
		t.Errorf("outside of a request: %q", got)
	}
}
