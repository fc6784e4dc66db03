package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
)

// scrape returns what Prometheus would read.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// has reports every line that a scrape lacks.
func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %q in the scrape", line)
		}
	}
}

func observed() *Metrics {
	m := New()
	m.Serves(map[string][]string{"nat44": {IPv4}, "cnat": {IPv6}})
	m.clock = func() time.Time { return time.Unix(1_800_000_000, 500_000_000) }
	m.Queued("nat44")
	m.Queued("other")
	m.Synced("other", time.Hour, true) // serves no family: not a sync of kube-proxy
	m.Synced("nat44", 3*time.Millisecond, true)
	m.Synced("nat44", 2*time.Second, false)
	m.Synced("cnat", time.Millisecond, false)
	m.Programmed(report.Programming{Latency: 800 * time.Millisecond})
	m.Programmed(report.Programming{Latency: -time.Second}) // clocks of two machines
	m.Operations("nat44", 10, 2, 1)
	m.Operations("nat44", 5, 0, -1)
	m.Healed("nat44", "key", 3)
	m.Healed("nat44", "key", 2)
	m.Healed("nat44", "full", 1)
	m.Drifted("nat44", 7)
	m.InputErrors(4)
	m.Limited(6)
	m.Changed(3, 7)
	m.Pending(1, 2)
	m.NoLocalEndpoints(false, 2, 1)
	m.NoLocalEndpoints(true, 0, 5)
	m.Memory("cnat", 1<<30, 1<<20, 7)
	m.Probed("healthz", 200)
	m.Probed("livez", 503)
	m.Probed("readyz", 200)
	m.Refused("http", "host")
	m.Watch(Sources{
		Actors: func() []runtime.ActorState {
			return []runtime.ActorState{
				{Kind: "service", State: "running", User: 2, Posted: 110, Coalesced: 1, Panics: 9, Busy: time.Second / 2},
				{Kind: "service", State: "running", Posted: 5, Restarts: 1, Panics: 1},
				{Kind: "service", State: "quarantined"},
				{Kind: "service", State: "quarantined"},
				{Kind: "service", State: "quarantined"},
				{Kind: "renderer", State: "running", Posted: 7},
			}
		},
		Parts:    func() map[string]bool { return map[string]bool{"nat44": true, "link": false} },
		Services: func() map[string]int { return map[string]int{"in-sync": 16} },
	})
	return m
}

func TestMetrics(t *testing.T) {
	text := scrape(t, observed())
	has(t, text,
		`troupe_healing_total{part="nat44",rung="key"} 5`,
		`troupe_healing_total{part="nat44",rung="full"} 1`,
		`troupe_http_refused_total{listener="http",why="host"} 1`,
		`troupe_http_refused_total{listener="control",why="traces"} 0`,
		`troupe_drift_total{renderer="nat44"} 7`,
		`troupe_vpp_heap_bytes{what="free"} 1.048576e+06`,
		`troupe_vpp_memory_waiting{renderer="cnat"} 7`,
		`kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 2`,
		`kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.004"} 1`,
		`kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="16.384"} 2`,
		`kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1`,
		`kubeproxy_sync_partial_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1`,
		`kubeproxy_sync_partial_proxy_rules_duration_seconds_count{ip_family="IPv6"} 1`,
		`kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="0.25"} 1`,
		`kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="1"} 2`,
		`kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="300"} 2`,
		`kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.8000000005e+09`,
		`kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 1.8000000005e+09`,
		`kubeproxy_sync_proxy_rules_service_changes_total 3`,
		`kubeproxy_sync_proxy_rules_endpoint_changes_total 7`,
		`kubeproxy_sync_proxy_rules_service_changes_pending 1`,
		`kubeproxy_sync_proxy_rules_endpoint_changes_pending 2`,
		`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"} 2`,
		`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv6",traffic_policy="external"} 5`,
		`kubeproxy_proxy_healthz_total{code="200"} 1`,
		`kubeproxy_proxy_livez_total{code="503"} 1`,
		`troupe_vpp_operations_total{outcome="succeeded",renderer="nat44"} 15`,
		`troupe_vpp_operations_total{outcome="failed",renderer="nat44"} 2`,
		`troupe_vpp_operations_total{outcome="unknown",renderer="nat44"} 1`,
		`troupe_input_errors 4`,
		`troupe_services_limited 6`,
		`troupe_actors{kind="service",state="running"} 2`,
		`troupe_actors{kind="service",state="quarantined"} 3`,
		`troupe_actor_messages_pending{kind="service"} 2`,
		`troupe_actor_messages_received_total{kind="service"} 115`,
		`troupe_actor_messages_received_total{kind="renderer"} 7`,
		`troupe_actor_messages_coalesced_total{kind="service"} 1`,
		`troupe_actor_restarts_total{kind="service"} 1`,
		`troupe_actor_failures_total{kind="service"} 10`,
		`troupe_actor_busy_seconds_total{kind="service"} 0.5`,
		`troupe_ready{part="link"} 0`,
		`troupe_ready{part="nat44"} 1`,
		`troupe_services{state="in-sync"} 16`,
	)
	if strings.Contains(text, `code="200"} 2`) {
		t.Error("readyz is counted as a probe of kube-proxy")
	}
	for _, family := range []string{"go_goroutines", "process_start_time_seconds", "go_build_info"} {
		if !strings.Contains(text, "\n"+family) {
			t.Errorf("no %s", family)
		}
	}
}

// TestNames: the names of Troupe follow the conventions; the names of kube-proxy stay.
func TestNames(t *testing.T) {
	problems, err := promlint.New(strings.NewReader(scrape(t, observed()))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "troupe_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestNobodyWatched: a scrape before the agent is up.
func TestNobodyWatched(t *testing.T) {
	m := New()
	if text := scrape(t, m); strings.Contains(text, "troupe_actors") {
		t.Error("actors before there are any")
	}
	m.Watch(Sources{})
	scrape(t, m)
}

// TestTwoInOneProcess do not meet.
func TestTwoInOneProcess(t *testing.T) {
	one, two := New(), New()
	one.InputErrors(1)
	has(t, scrape(t, two), "troupe_input_errors 0")
}

// BenchmarkObserve is the cost of one batch for a renderer.
func BenchmarkObserve(b *testing.B) {
	m := New()
	m.Serves(map[string][]string{"nat44": {IPv4}})
	b.ReportAllocs()
	for b.Loop() {
		m.Synced("nat44", time.Millisecond, false)
		m.Operations("nat44", 10, 0, 0)
		m.Programmed(report.Programming{Latency: time.Millisecond})
	}
}

// TestExemplars: they are on the page of a client that reads OpenMetrics, where they are asked for.
func TestExemplars(t *testing.T) {
	for _, on := range []bool{false, true} {
		m := New()
		if on {
			m.Exemplars()
		}
		m.Programmed(report.Programming{Latency: time.Millisecond, IPv6: true, Cause: 46})
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, r)
		if got := strings.Contains(w.Body.String(), `{ip_family="IPv6",le="0.25"} 1 # {cause="46"} 0.001`); got != on || !strings.Contains(w.Body.String(), `programming_duration_seconds_count{ip_family="IPv6"} 1`) {
			t.Errorf("exemplars %v: %s", on, w.Body)
		}
	}
}
