package agent

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// asked is one answer about the health of a node, decoded strictly: nothing more, nothing less than
// kube-proxy says.
type asked struct {
	code   int
	health healthcheck.ProxyHealth
}

// family is what the answer says of IPv4.
func (a asked) family() healthcheck.FamilyHealth { return a.health.Status["IPv4"] }

// eligible is what the answer says of the node; an answer that says nothing is "".
func (a asked) eligible() string {
	switch e := a.health.NodeEligible; {
	case e == nil:
		return ""
	case *e:
		return "yes"
	default:
		return "no"
	}
}

// TestMetricsForTheNetwork: the address for scrapes has the metrics and nothing else.
func TestMetricsForTheNetwork(t *testing.T) {
	cfg := everything(t)
	cfg.API.MetricsBindAddress = "127.0.0.1:0"
	a := run(t, cfg)
	eventually(t, "it listens", func() bool { return a.scraped.Address() != "" })
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/": http.StatusNotFound, "/api/v1/services": http.StatusNotFound, "/livez": http.StatusNotFound} {
		answer, err := http.Get("http://" + a.scraped.Address() + path) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != want || want == http.StatusOK != strings.Contains(string(body), "\ntroupe_ready{") {
			t.Errorf("%s: %d %v, want %d:\n%s", path, answer.StatusCode, err, want, body)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// askHealth asks for the health of a node as a load balancer does.
func askHealth(t *testing.T, url string) asked {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Get(url) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type") + " " + response.Header.Get("X-Content-Type-Options"); got != "application/json nosniff" {
		t.Errorf("%s: header %q", url, got)
	}
	got := asked{code: response.StatusCode}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got.health); err != nil {
		t.Fatalf("%s: %s: %v", url, body, err)
	}
	return got
}

// healthURL waits until the agent listens for questions about its health.
func healthURL(t *testing.T, a *Agent) string {
	t.Helper()
	eventually(t, "it listens", func() bool { return healthAddress(a) != "" })
	return "http://" + healthAddress(a)
}

// later answers like an agent as many seconds later, if nothing happens until then.
func later(t *testing.T, a *Agent, passed time.Duration) string {
	t.Helper()
	server := httptest.NewServer(healthcheck.NewNodeHealth(healthcheck.NodeHealthConfig{
		State: a.nodeState, Now: func() time.Time { return time.Now().Add(passed) },
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestHealthOfTheNode: a load balancer and the kubelet ask a running agent, while its Node stays,
// is about to go, goes and comes back.
func TestHealthOfTheNode(t *testing.T) {
	cfg := everything(t)
	cfg.API.HealthzBindAddress = "127.0.0.1:0"
	dir, _ := cfg.Kubernetes.FilesDir()
	nodes := filepath.Join(dir, "nodes.yaml")
	original, err := os.ReadFile(nodes)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	a := run(t, cfg)
	ready(t, a)
	url := healthURL(t, a)
	for _, step := range []struct {
		name, old, new string
		code           int
		eligible       string
	}{
		{"it stays", "", "", 200, "yes"},
		{"the autoscaler wants to remove it", "spec:\n", "spec:\n  taints: [{key: ToBeDeletedByClusterAutoscaler, effect: NoSchedule}]\n", 503, "no"},
		{"another taint", "spec:\n", "spec:\n  taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]\n", 200, "yes"},
		{"it is being deleted", "  labels:\n", "  deletionTimestamp: \"2026-10-02T08:00:00Z\"\n  labels:\n", 503, "no"},
		{"it is back", "", "", 200, "yes"},
		{"it is gone", "name: shop-a\n", "name: shop-z\n", 503, "no"},
	} {
		text := strings.Replace(string(original), step.old, step.new, 1)
		if err := os.WriteFile(nodes, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		eventually(t, step.name, func() bool { return askHealth(t, url+"/healthz").eligible() == step.eligible })
		got, live := askHealth(t, url+"/healthz"), askHealth(t, url+"/livez")
		if got.code != step.code || !got.health.Healthy || live.code != 200 || !live.health.Healthy || live.eligible() != "" {
			t.Errorf("%s: healthz %+v, livez %+v", step.name, got, live)
		}
		last := got.family().LastUpdated
		if !got.family().Healthy || len(got.health.Status) != 1 || last.Before(began) || last.After(time.Now()) {
			t.Errorf("%s: families %+v", step.name, got.health.Status)
		}
		if good := got.code == 200; good != got.health.LastUpdated.Equal(got.health.CurrentTime) || !good && !got.health.LastUpdated.Equal(last) {
			t.Errorf("%s: last updated %v at %v, IPv4 %v", step.name, got.health.LastUpdated, got.health.CurrentTime, last)
		}
	}
	if n := scrape(t, a).find(`kubeproxy_proxy_healthz_total{code="503"}`); n == "" || n == "0" {
		t.Errorf("%q answers of 503 were counted", n)
	}
}

// TestWhatMakesANodeUnhealthy: a change that does not reach VPP for a minute does, in any
// component; a source or an etcd that is down does not.
func TestWhatMakesANodeUnhealthy(t *testing.T) {
	for name, tt := range map[string]struct {
		change      func(t *testing.T, cfg *config.Agent)
		reach       func(t *testing.T, a *Agent)
		soon, after bool // healthy
		lost        int  // healthz after the time for a lost VPP
		healthz     int  // at the end
	}{
		"all is well": {reach: ready, soon: true, after: true, lost: 200, healthz: 200},
		"no VPP": {
			change: func(_ *testing.T, cfg *config.Agent) {
				cfg.VPP.Mode, cfg.VPP.APISocket = config.VPPSocket, "/nonexistent"
			},
			reach: func(t *testing.T, a *Agent) {
				eventually(t, "the node is known", func() bool { return a.nodeState().Known })
				reason(t, a, "link", "waiting for VPP")
			},
			soon: true, after: false, lost: 503, healthz: 503,
		},
		"no etcd": {
			change: func(t *testing.T, cfg *config.Agent) {
				cfg.Etcd.Mode, cfg.Etcd.Endpoints = config.EtcdExternal, []string{"http://" + dead(t)}
			},
			reach: func(t *testing.T, a *Agent) {
				eventually(t, "everything else is well", func() bool {
					report := a.readiness.Load()
					return strings.HasPrefix(report.Reasons(), "nodes: ") && !strings.Contains(report.Reasons(), "; ")
				})
			},
			soon: true, after: true, lost: 200, healthz: 200,
		},
		"nothing is known of Kubernetes": {
			change: func(t *testing.T, cfg *config.Agent) {
				cfg.Kubernetes.Source, cfg.Kubernetes.Kubeconfig = config.SourceKubernetes, kubeconfig(t, dead(t))
			},
			reach: func(t *testing.T, a *Agent) {
				eventually(t, "VPP is connected", func() bool { return partOK(a, "link") })
			},
			soon: true, after: true, lost: 503, healthz: 503, // not eligible
		},
		"VPP refuses a row": {
			reach: func(t *testing.T, a *Agent) {
				ready(t, a)
				settled(t, a)
				refuseRows(t, a)
				vip, _, _ := strings.Cut(must(a.Backend().Service(t.Context(), "shop/web"))(t).InVPP[0].VIP, "/")
				if retval, err := a.Simulator().ForeignRemove(netip.MustParseAddrPort(vip), 6); err != nil || retval != 0 {
					t.Fatal(retval, err)
				}
				if err := a.Backend().StartResync(t.Context(), api.ResyncRequest{Reason: "test"}); err != nil {
					t.Fatal(err)
				}
				reason(t, a, "nat44", "1 rows refused by VPP")
			},
			soon: true, after: true, lost: 200, healthz: 200,
		},
		"VPP refuses every row": {
			reach: func(t *testing.T, a *Agent) {
				ready(t, a)
				refuseRows(t, a)
				a.Simulator().Crash()
				reason(t, a, "nat44", "rows refused by VPP")
			},
			soon: true, after: false, lost: 200, healthz: 503,
		},
		"the renderer does not come to it": {
			change: func(_ *testing.T, cfg *config.Agent) { cfg.API.EnableChaos = true },
			reach: func(t *testing.T, a *Agent) {
				ready(t, a)
				quiescent(t, a)
				if err := a.Backend().Command(t.Context(), address.Renderer("nat44"), "suspend"); err != nil {
					t.Fatal(err)
				}
				dir, _ := a.cfg.Kubernetes.FilesDir()
				addService(t, dir)
				eventually(t, "a change waits", func() bool { return !a.pending.Oldest(nil).IsZero() })
			},
			soon: true, after: false, lost: 200, healthz: 503,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := everything(t)
			if tt.change != nil {
				tt.change(t, cfg)
			}
			a := run(t, cfg)
			tt.reach(t, a)
			eventually(t, "nothing but what is wanted waits", func() bool { return a.nodeState().Families[messages.IPFamily_IPV4].QueuedSince.IsZero() == tt.after })
			if soon := askHealth(t, later(t, a, 0)+"/livez"); soon.health.Healthy != tt.soon {
				t.Errorf("soon: %+v", soon)
			}
			if got := askHealth(t, later(t, a, healthcheck.DefaultLostTimeout)+"/healthz"); got.code != tt.lost {
				t.Errorf("after %s: healthz %+v, want %d", healthcheck.DefaultLostTimeout, got, tt.lost)
			}
			after := later(t, a, healthcheck.NodeTimeout)
			if live := askHealth(t, after+"/livez"); live.health.Healthy != tt.after || (live.code == 200) != tt.after {
				t.Errorf("after a minute: livez %+v", live)
			}
			if got := askHealth(t, after+"/healthz"); got.code != tt.healthz || got.family().Healthy != tt.after {
				t.Errorf("after a minute: healthz %+v", got)
			}
		})
	}
}

// refuseRows has VPP refuse every new row.
func refuseRows(t *testing.T, a *Agent) {
	t.Helper()
	t.Cleanup(a.Simulator().Inject(simulator.Fault{Message: "nat44_add_del_lb_static_mapping", Retval: -1, Times: 1 << 30}))
}

// addService adds a service to the files of the source.
func addService(t *testing.T, dir string) {
	t.Helper()
	text := `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "late", "namespace": "shop", "uid": "late"},
		"spec": {"clusterIP": "10.96.77.77", "clusterIPs": ["10.96.77.77"], "ipFamilies": ["IPv4"], "ports": [{"port": 80, "protocol": "TCP"}]}}`
	if err := os.WriteFile(filepath.Join(dir, "late.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// logged collects lines of a log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write satisfies io.Writer.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// TestHealthPortIsTaken: a kube-proxy that still runs keeps neither the agent from working nor the
// port for ever.
func TestHealthPortIsTaken(t *testing.T) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	cfg := everything(t)
	cfg.API.HealthzBindAddress = proxy.Addr().String()
	var log logged
	a, err := Start(cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, a)
	ready(t, a)
	eventually(t, "a warning", func() bool { return log.count("does a kube-proxy still run here?") == 1 })
	eventually(t, "an event", func() bool { return log.count("reason=FailedToStartProxierHealthcheck") == 1 })
	if healthAddress(a) != "" {
		t.Errorf("listens on %s", healthAddress(a))
	}
	_ = proxy.Close()
	if got := askHealth(t, healthURL(t, a)+"/healthz"); got.code != 200 {
		t.Errorf("got %+v", got)
	}
	eventually(t, "an event that it is over", func() bool { return log.count("reason=Recovered") == 1 })
}

// TestHealthCheckPortIsTaken: a health-check node port that another one has is told by readiness
// and by its service, and no longer when it is served.
func TestHealthCheckPortIsTaken(t *testing.T) {
	cfg := everything(t)
	file := filepath.Join(strings.TrimPrefix(cfg.Kubernetes.Source, config.SourceFilesPrefix), "late.json")
	text := `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "late", "namespace": "shop", "uid": "late", "creationTimestamp": "2099-01-02T03:04:05Z"},
		"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 31080, "clusterIP": "10.96.77.77", "clusterIPs": ["10.96.77.77"],
		"ipFamilies": ["IPv4"], "ports": [{"port": 80, "protocol": "TCP"}]}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := run(t, cfg)
	ready(t, a)
	told := func() (part, service string) {
		for _, p := range a.Backend().Readiness().Parts {
			if p.Name == "health-checks" && p.OK {
				part = p.Reason
			}
		}
		if detail, err := a.Backend().Service(t.Context(), "shop/late"); err == nil {
			service = detail.Error
		}
		return part, service
	}
	eventually(t, "what is not served", func() bool {
		part, service := told()
		return strings.Contains(part, "1 not served, for example of shop/late: ") && strings.HasPrefix(service, "healthCheckNodePort ")
	})
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "31080", "31081")), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing any more", func() bool { part, service := told(); return part+service == "" })
}
