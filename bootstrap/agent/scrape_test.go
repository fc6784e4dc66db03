package agent

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// promised are the metrics that dashboards and alerts may rely on, with labels where a certain
// series must be there. They are part of the public interface.
var promised = []string{
	`troupe_ready{part="nat44"}`, `troupe_ready{part="link"}`, `troupe_ready{part="nodes"}`, `troupe_ready{part="watch"}`,
	`troupe_services{state="in-sync"}`, `troupe_services{state="pending"}`, `troupe_services{state="failed"}`,
	`troupe_services{state="quarantined"}`, `troupe_services{state="not-served"}`, `troupe_services{state="partly"}`,
	`troupe_vpp_connections_total`,
	`troupe_source_stale_seconds`, `troupe_input_errors`, `troupe_services_limited`, `troupe_unplaced_addresses`, `troupe_unanswered_endpoints`, `troupe_answers_alarm`,
	`troupe_http_refused_total{listener="http",why="host"}`, `troupe_http_refused_total{listener="http",why="origin"}`, `troupe_http_refused_total{listener="http",why="address"}`,
	`troupe_http_refused_total{listener="http",why="traces"}`, `troupe_http_refused_total{listener="http",why="connections"}`,
	`troupe_http_refused_total{listener="control",why="traces"}`, `troupe_http_refused_total{listener="healthz",why="connections"}`,
	`troupe_http_refused_total{listener="health-check-node-port",why="connections"}`,
	`troupe_http_refused_total{listener="metrics",why="connections"}`, `troupe_drift_total{renderer="nat44"}`,
	`troupe_healing_total{part="nat44",rung="key"}`, `troupe_healing_total{part="nat44",rung="exit"}`,
	`troupe_mirror_serving`, `troupe_mirror_saved_timestamp_seconds`, `troupe_mirror_saves_total`, `troupe_mirror_refused_total{why="failed"}`,
	`troupe_mirror_refused_total{why="empty"}`, `troupe_mirror_refused_total{why="foreign"}`,
	`troupe_nat_sessions{protocol="tcp"}`, `troupe_nat_sessions{protocol="udp"}`, `troupe_nat_sessions{protocol="icmp"}`,
	`troupe_nat_sessions{protocol="other"}`, `troupe_nat_sessions_expired{protocol="tcp"}`, `troupe_nat_sessions_busiest_worker`,
	`troupe_nat_session_limit`, `troupe_nat_session_alarm`, `troupe_draining_endpoints`, `troupe_nat_sessions_deleted_total`, `troupe_nat_session_errors_total`,
	`troupe_cnat_sessions`, `troupe_cnat_dropped_packets{reason="ports"}`, `troupe_cnat_dropped_packets{reason="sessions"}`, `troupe_cnat_session_alarm`,
	`troupe_vpp_operations_total{outcome="succeeded",renderer="nat44"}`, `troupe_vpp_operations_total{outcome="failed",renderer="nat44"}`,
	`troupe_vpp_operations_total{outcome="unknown",renderer="nat44"}`,
	`troupe_vpp_heap_bytes{what="total"}`, `troupe_vpp_heap_bytes{what="free"}`, `troupe_vpp_memory_waiting{renderer="nat44"}`,
	`troupe_actors{kind="service"`, `troupe_actor_messages_pending{kind="service"}`, `troupe_actor_messages_received_total{kind="service"}`,
	`troupe_actor_messages_coalesced_total{kind="service"}`, `troupe_actor_restarts_total{kind="service"}`,
	`troupe_actor_failures_total{kind="service"}`, `troupe_actor_busy_seconds_total{kind="service"}`,
	`kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"}`, `kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"}`,
	`kubeproxy_sync_partial_proxy_rules_duration_seconds_count{ip_family="IPv4"}`,
	`kubeproxy_network_programming_duration_seconds_count{ip_family="IPv4"}`,
	`kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"}`, `kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"}`,
	`kubeproxy_sync_proxy_rules_service_changes_total`, `kubeproxy_sync_proxy_rules_endpoint_changes_total`,
	`kubeproxy_sync_proxy_rules_service_changes_pending`, `kubeproxy_sync_proxy_rules_endpoint_changes_pending`,
	`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"}`,
	`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"}`,
	`kubeproxy_proxy_healthz_total{code="200"}`, `kubeproxy_proxy_livez_total{code="200"}`,
	`go_goroutines`, `process_resident_memory_bytes`, `go_build_info{`,
}

// scraped is the answer of a scrape, by series.
type scraped map[string]string

func scrape(t *testing.T, a *Agent) scraped {
	t.Helper()
	w := httptest.NewRecorder()
	a.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: %d", w.Code)
	}
	out := scraped{}
	for line := range strings.Lines(w.Body.String()) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") {
			out[line[:i]] = strings.TrimSpace(line[i+1:])
		}
	}
	return out
}

// scrapeServices scrapes until the services are counted: a scrape does not wait long for them.
func scrapeServices(t *testing.T, a *Agent) (got scraped) {
	t.Helper()
	eventually(t, "the services are counted", func() bool {
		got = scrape(t, a)
		return got.find("troupe_services{") != ""
	})
	return got
}

// find returns the value of the first series that begins like this; "" = there is none.
func (s scraped) find(begin string) string {
	for series, value := range s {
		if strings.HasPrefix(series, begin) {
			return value
		}
	}
	return ""
}

// TestPromisedMetrics: every one is there and none is about a single service, pod or address.
func TestPromisedMetrics(t *testing.T) {
	a := run(t, everything(t))
	ready(t, a)
	settled(t, a)
	for _, path := range []string{"/livez", "/healthz"} {
		response, err := http.Get("http://" + a.HTTPAddress() + path) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	got := scrapeServices(t, a)
	for _, series := range promised {
		if got.find(series) == "" {
			t.Errorf("no metric %s", series)
		}
	}
	tooFine := regexp.MustCompile(`shop|web|kube-system|10\.\d+\.\d+\.\d+|192\.168\.`)
	names := map[string]bool{}
	for series := range got {
		name, labels, _ := strings.Cut(series, "{")
		names[strings.NewReplacer("_bucket", "", "_count", "", "_sum", "").Replace(name)] = true
		if tooFine.MatchString(labels) && name != "go_build_info" {
			t.Errorf("%s has labels that grow with the cluster", series)
		}
	}
	for name := range names {
		if (strings.HasPrefix(name, "troupe_") || strings.HasPrefix(name, "kubeproxy_")) && !isPromised(name) {
			t.Errorf("%s is not in the list of promised metrics", name)
		}
	}
	for series, want := range map[string]string{
		`troupe_services{state="in-sync"}`: "14", `troupe_services{state="not-served"}`: "0", `troupe_services{state="pending"}`: "0",
		`troupe_input_errors`: "0", `troupe_source_stale_seconds`: "0", `troupe_ready{part="nat44"}`: "1", `troupe_actors{kind="service"`: "14",
		`kubeproxy_sync_proxy_rules_service_changes_total`: "14", `kubeproxy_sync_proxy_rules_service_changes_pending`: "0",
		`kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"}`: "1",
		// files have no stamps
		`kubeproxy_network_programming_duration_seconds_count{ip_family="IPv4"}`:                          "0",
		`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"}`: "0",
	} {
		if value := got.find(series); value != want {
			t.Errorf("%s is %q, want %s", series, value, want)
		}
	}
}

func isPromised(name string) bool {
	for _, series := range promised {
		if strings.HasPrefix(series, name+"{") || series == name || strings.HasPrefix(series, name+"_count{") {
			return true
		}
	}
	return false
}

// TestNoLocalEndpoints: on a node without an endpoint of a service whose policy is Local, its ports
// are counted.
func TestNoLocalEndpoints(t *testing.T) {
	cfg := everything(t)
	cfg.NodeName = "shop-c"
	a := run(t, cfg)
	ready(t, a)
	settled(t, a)
	const series = `kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"}`
	if value := scrapeServices(t, a).find(series); value != "1" {
		t.Errorf("%s is %q, want 1: shop/web has one port", series, value)
	}
}

// TestProgrammingLatency: a change of endpoints that Kubernetes has stamped is measured once, when
// VPP has it.
func TestProgrammingLatency(t *testing.T) {
	cfg := everything(t)
	dir, _ := cfg.Kubernetes.FilesDir()
	a := run(t, cfg)
	ready(t, a)
	path := filepath.Join(dir, "edge.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stamp := time.Now().Add(-3 * time.Second).UTC().Format(time.RFC3339Nano)
	changed := strings.Replace(string(content), "    kubernetes.io/service-name: web\n", "    kubernetes.io/service-name: web\n"+
		"  annotations:\n    endpoints.kubernetes.io/last-change-trigger-time: \""+stamp+"\"\n", 1)
	changed = strings.Replace(changed, `- "10.1.1.4"`, `- "10.1.1.44"`, 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	const series = "kubeproxy_network_programming_duration_seconds"
	count := func() string { return scrape(t, a).find(series + `_count{ip_family="IPv4"}`) }
	eventually(t, "the change is measured", func() bool { return count() == "1" })
	var seconds float64
	if _, err := fmt.Sscan(scrape(t, a).find(series+`_sum{ip_family="IPv4"}`), &seconds); err != nil || seconds < 3 || seconds > 20 {
		t.Errorf("it took %f s (%v), want a little more than 3", seconds, err)
	}
	if err := a.Backend().StartResync(t.Context(), api.ResyncRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := a.Kill(address.Service("shop/web")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the actor is restarted", func() bool { return a.Restarts(address.Service("shop/web")) == 1 })
	ready(t, a)
	if got := count(); got != "1" {
		t.Errorf("measured %s times", got)
	}
}

// TestScrapeDoesNotHang: an introspection that does not answer costs a scrape a moment, and the
// numbers stay those of the last one.
func TestScrapeDoesNotHang(t *testing.T) {
	cfg := everything(t)
	cfg.API.EnableChaos = true
	a := run(t, cfg)
	ready(t, a)
	settled(t, a)
	scrapeServices(t, a)
	if err := a.Backend().Command(t.Context(), address.Introspect, api.VerbSuspend); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if got := scrape(t, a).find(`troupe_services{state="in-sync"}`); got != "14" {
		t.Errorf("%s services in sync, want 14 as before", got)
	}
	if took := time.Since(began); took > 20*scrapeTimeout {
		t.Errorf("the scrape took %s", took)
	}
}
