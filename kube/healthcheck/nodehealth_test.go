package healthcheck

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

const (
	v4 = messages.IPFamily_IPV4
	v6 = messages.IPFamily_IPV6
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// ago is a moment before now.
func ago(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }

func TestNodeHealth(t *testing.T) {
	type families = map[messages.IPFamily]SyncState
	for _, test := range []struct {
		name          string
		state         NodeState
		healthz       int
		healthzBody   string
		livez         int
		livezBody     string
		healthyAtAll  bool
		healthyFamily map[string]bool
	}{
		{
			name:    "in sync for a long time",
			state:   NodeState{Families: families{v4: {LastUpdated: ago(3600)}}, Known: true},
			healthz: 200,
			healthzBody: `{"lastUpdated":"2026-01-02T03:04:05Z","currentTime":"2026-01-02T03:04:05Z","nodeEligible":true,"healthy":true,` +
				`"status":{"IPv4":{"lastUpdated":"2026-01-02T02:04:05Z","healthy":true}}}`,
			livez: 200,
			livezBody: `{"lastUpdated":"2026-01-02T03:04:05Z","currentTime":"2026-01-02T03:04:05Z","healthy":true,` +
				`"status":{"IPv4":{"lastUpdated":"2026-01-02T02:04:05Z","healthy":true}}}`,
			healthyAtAll: true, healthyFamily: map[string]bool{"IPv4": true},
		},
		{
			name:    "a change waits, not for long yet",
			state:   NodeState{Families: families{v4: {QueuedSince: ago(59), LastUpdated: ago(90)}}, Known: true},
			healthz: 200, livez: 200, healthyAtAll: true, healthyFamily: map[string]bool{"IPv4": true},
		},
		{
			name: "one family is stuck",
			state: NodeState{
				Families: families{v4: {QueuedSince: ago(60), LastUpdated: ago(90)}, v6: {QueuedSince: ago(1), LastUpdated: ago(2)}}, Known: true,
			},
			healthz: 503,
			healthzBody: `{"lastUpdated":"2026-01-02T03:04:03Z","currentTime":"2026-01-02T03:04:05Z","nodeEligible":true,"healthy":false,` +
				`"status":{"IPv4":{"lastUpdated":"2026-01-02T03:02:35Z","healthy":false},"IPv6":{"lastUpdated":"2026-01-02T03:04:03Z","healthy":true}}}`,
			livez: 503,
			livezBody: `{"lastUpdated":"2026-01-02T03:04:03Z","currentTime":"2026-01-02T03:04:05Z","healthy":false,` +
				`"status":{"IPv4":{"lastUpdated":"2026-01-02T03:02:35Z","healthy":false},"IPv6":{"lastUpdated":"2026-01-02T03:04:03Z","healthy":true}}}`,
			healthyFamily: map[string]bool{"IPv4": false, "IPv6": true},
		},
		{
			name:    "the dataplane restarts",
			state:   NodeState{Families: families{v4: {QueuedSince: ago(3)}}, LostSince: ago(3), Known: true},
			healthz: 200, livez: 200, healthyAtAll: true, healthyFamily: map[string]bool{"IPv4": true},
		},
		{
			name:    "the dataplane is lost",
			state:   NodeState{Families: families{v4: {QueuedSince: ago(4), LastUpdated: ago(10)}}, LostSince: ago(4), Known: true},
			healthz: 503,
			healthzBody: `{"lastUpdated":"2026-01-02T03:03:55Z","currentTime":"2026-01-02T03:04:05Z","nodeEligible":true,"healthy":false,` +
				`"status":{"IPv4":{"lastUpdated":"2026-01-02T03:03:55Z","healthy":false}}}`,
			livez: 200, healthyFamily: map[string]bool{"IPv4": true},
		},
		{
			name:    "the node is leaving",
			state:   NodeState{Families: families{v4: {LastUpdated: ago(10)}}, Known: true, Leaving: true},
			healthz: 503,
			healthzBody: `{"lastUpdated":"2026-01-02T03:03:55Z","currentTime":"2026-01-02T03:04:05Z","nodeEligible":false,"healthy":true,` +
				`"status":{"IPv4":{"lastUpdated":"2026-01-02T03:03:55Z","healthy":true}}}`,
			livez: 200, healthyAtAll: true, healthyFamily: map[string]bool{"IPv4": true},
		},
		{
			name:    "the node is not known",
			state:   NodeState{Families: families{v4: {LastUpdated: ago(10)}}},
			healthz: 503, livez: 200, healthyAtAll: true, healthyFamily: map[string]bool{"IPv4": true},
		},
		{
			name:        "starting: no family has anything to say",
			state:       NodeState{Known: true},
			healthz:     200,
			healthzBody: `{"lastUpdated":"2026-01-02T03:04:05Z","currentTime":"2026-01-02T03:04:05Z","nodeEligible":true,"healthy":true}`,
			livez:       200, healthyAtAll: true, healthyFamily: map[string]bool{},
		},
		{
			name:    "starting: the first update is under way",
			state:   NodeState{Families: families{v4: {QueuedSince: ago(59)}}, Known: true},
			healthz: 200, livez: 200, healthyAtAll: true, healthyFamily: map[string]bool{"IPv4": true},
		},
		{
			name:    "starting: the first update does not come about",
			state:   NodeState{Families: families{v4: {QueuedSince: ago(61)}}, Known: true},
			healthz: 503, livez: 503, healthyFamily: map[string]bool{"IPv4": false},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			answered := map[string]int{}
			h := NewNodeHealth(NodeHealthConfig{
				State: func() NodeState { return test.state }, Now: func() time.Time { return now },
				Answered: func(endpoint string, status int) { answered[endpoint] = status },
			})
			askNode(t, h, "/healthz", test.healthz, test.healthzBody)
			askNode(t, h, "/livez", test.livez, test.livezBody)
			if diff := cmp.Diff(map[string]int{"healthz": test.healthz, "livez": test.livez}, answered); diff != "" {
				t.Errorf("Answered (-want +got):\n%s", diff)
			}
			if h.Healthy() != test.healthyAtAll {
				t.Errorf("Healthy is %t", h.Healthy())
			}
			got := map[string]bool{}
			for name, family := range Evaluate(test.state, now).Status {
				got[name] = family.Healthy
			}
			if diff := cmp.Diff(test.healthyFamily, got); diff != "" {
				t.Errorf("families (-want +got):\n%s", diff)
			}
		})
	}
}

// askNode compares one answer; an empty body is not compared.
func askNode(t *testing.T, h http.Handler, path string, status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != status || body != "" && w.Body.String() != body {
		t.Errorf("%s: %d %s\nwant %d %s", path, w.Code, w.Body, status, body)
	}
	if got := w.Header().Get("Content-Type") + " " + w.Header().Get("X-Content-Type-Options"); got != "application/json nosniff" {
		t.Errorf("%s: header %q", path, got)
	}
}

func TestNodeHealthOverHTTP(t *testing.T) {
	server := httptest.NewServer(NewNodeHealth(NodeHealthConfig{State: func() NodeState { return NodeState{Known: true} }}))
	defer server.Close()
	for path, want := range map[string]int{"/healthz": 200, "/livez": 200, "/": 404, "/healthz/x": 404} {
		got, err := request(http.MethodPost, server.URL+path)
		if err != nil || got.status != want {
			t.Errorf("%s: %d, %v, want %d", path, got.status, err, want)
		}
	}
}
