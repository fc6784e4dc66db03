package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

// FuzzHTTP: whatever a client sends, no handler panics or answers with an internal error. Errors
// are JSON with a text, and the read-only listener changes nothing.
func FuzzHTTP(f *testing.F) {
	for _, raw := range []string{
		"GET /api/v1/services?limit=2&sort=-changed HTTP/1.1\r\nHost: n1\r\n\r\n",
		"GET /api/v1/services/shop/service-009 HTTP/1.1\r\nHost: n1\r\n\r\n",
		"GET /api/v1/actors/agent/world/services/shop~service-001/mailbox HTTP/1.1\r\nHost: n1\r\n\r\n",
		"GET /api/v1/events?before=3&kind=drill HTTP/1.1\r\nHost: n1\r\n\r\n",
		"POST /api/v1/resync HTTP/1.1\r\nHost: n1\r\nContent-Length: 16\r\n\r\n{\"reason\": \"go\"}",
		"POST /api/v1/resync HTTP/1.1\r\nHost: n1\r\nContent-Length: 8\r\n\r\n{\"x\": 1}",
		"POST /api/v1/actors/agent/world:kill HTTP/1.1\r\nHost: n1\r\n\r\n",
		"POST /api/v1/actors/agent/dataplane/nat44:suspend HTTP/1.1\r\nHost: n1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST /api/v1/chaos HTTP/1.1\r\nHost: n1\r\nContent-Length: 41\r\n\r\n{\"fault\": \"kill\", \"actor\": \"agent/world\"}",
		"POST /api/v1/chaos HTTP/1.1\r\nHost: n1\r\nContent-Length: 54\r\n\r\n{\"plan\": {\"faults\": [{\"fault\":\"kill\",\"of\":\"service\"}]}}",
		"DELETE /api/v1/chaos HTTP/1.1\r\nHost: n1\r\n\r\n", "GET /api/v1/chaos HTTP/1.1\r\nHost: n1\r\n\r\n",
		"GET /api/v1/diff HTTP/1.1\r\nHost: [::1%25eth0]:80\r\nOrigin: null\r\n\r\n", "GET http://n2:/ HTTP/1.1\r\nHost: n1\r\nOrigin: http://[\r\n\r\n",
		"OPTIONS /api/v1/tree HTTP/1.1\r\nHost: n1\r\n\r\n", "HEAD /readyz?verbose HTTP/1.0\r\n\r\n", "GET /api/v1/top?limit=%zz HTTP/1.1\r\nHost: n1\r\n\r\n",
	} {
		f.Add(raw)
	}
	log := slog.New(slog.DiscardHandler)
	f.Fuzz(func(t *testing.T, raw string) {
		for _, control := range []bool{false, true} {
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
			if err != nil {
				return // net/http has answered
			}
			troupe := apitest.New(12)
			before := everythingOf(t, troupe)
			w := httptest.NewRecorder()
			server.New(troupe, server.Config{AllowedHosts: []string{"n1"}}, log).Handler(control).ServeHTTP(w, r)
			got := w.Result()
			body, err := io.ReadAll(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got.StatusCode == http.StatusInternalServerError {
				t.Errorf("control %t: %s: %d %s", control, r.URL, got.StatusCode, body)
			}
			if strings.HasPrefix(got.Header.Get("Content-Type"), "application/json") {
				var said api.Error
				if err := json.Unmarshal(body, &said); !json.Valid(body) || got.StatusCode >= 400 && r.URL.Path != "/healthz" && (err != nil || said.Error == "") {
					t.Errorf("control %t: %s: %d %q: %v", control, r.URL, got.StatusCode, body, err)
				}
			}
			if after := everythingOf(t, troupe); after != before && (!control || r.Method != http.MethodPost) {
				t.Errorf("control %t: %s %s changed something:\n%s", control, r.Method, r.URL, cmp.Diff(before, after))
			}
		}
	})
}

// everythingOf is the whole state that the API can change.
func everythingOf(t *testing.T, troupe *apitest.Troupe) string {
	t.Helper()
	actors, err := troupe.Actors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	events, err := troupe.Events(t.Context(), api.EventQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(map[string]any{"actors": actors, "events": events}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
