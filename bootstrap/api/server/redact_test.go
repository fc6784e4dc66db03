package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

// TestRedact: where it is configured, contents are left out over TCP, and their types and keys are
// not.
func TestRedact(t *testing.T) {
	const actor = "/api/v1/actors/agent/world/services/shop~service-001"
	for _, tt := range []struct {
		redact, control bool
		whole           bool
	}{{false, false, true}, {false, true, true}, {true, true, true}, {true, false, false}} {
		h := server.New(apitest.New(3), server.Config{Redact: tt.redact}, quiet()).Handler(tt.control)
		ask := func(what string) (int, string) {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, actor+what, nil)
			r.Host = "localhost"
			h.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		code, box := ask("/mailbox")
		if code != http.StatusOK || !strings.Contains(box, `"type": "*messages.Render"`) || strings.Contains(box, `"body"`) != tt.whole {
			t.Errorf("%+v: %d %s", tt, code, box)
		}
		code, state := ask("/state")
		if (code == http.StatusOK) != tt.whole || !tt.whole && (code != http.StatusForbidden || !strings.Contains(state, "api.redactMessages")) {
			t.Errorf("%+v: %d %s", tt, code, state)
		}
	}
	h := server.New(apitest.New(3), server.Config{Redact: true}, quiet()).Handler(false)
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/v1/actors/none/state", nil)
	r.Host = "localhost"
	if h.ServeHTTP(w, r); w.Code != http.StatusNotFound {
		t.Errorf("an actor that does not exist: %d %s", w.Code, w.Body)
	}
}
