package bootstrap

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/plan"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	routesvpp "github.com/troupe-vpp/troupe/vpp/routes"
)

// planned is the part of a node that a plan and an agent must report alike. All lists are ordered.
type planned struct {
	Frontends      []api.Frontend
	HealthChecks   []api.HealthCheck
	Rows           []api.Row
	Approximations []api.FrontendApproximation
}

// ordered orders the lists of a plan by their text.
func (p *planned) ordered() *planned {
	order(p.Frontends)
	order(p.HealthChecks)
	order(p.Rows)
	order(p.Approximations)
	return p
}

func order[T any](list []T) {
	text := func(v T) string { return fmt.Sprintf("%+v", v) }
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(text(a), text(b)) })
}

// TestPlanSaysWhatTheAgentSays feeds clusters to `troupe plan` and to a running agent on a
// simulated VPP: every acceptance case with every state of its steps, and some further situations.
// Frontends, health checks, rows and every report of what is not exactly as Kubernetes asks are the
// same. Only the agent knows whether VPP has its session layer, so the plan says a condition.
func TestPlanSaysWhatTheAgentSays(t *testing.T) {
	for _, c := range slices.Concat(loadPlanCases(t), unusualCases()) {
		t.Run(c.Name, func(t *testing.T) {
			w := worldOf(c)
			dir := t.TempDir()
			a := startAgent(t, c, dir, w)
			compare := func(t *testing.T, metrics *caseMetrics) {
				t.Helper()
				want, got := w.planned(t), &planned{}
				diff := "not asked yet"
				for deadline := time.Now().Add(20 * time.Second); diff != "" && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
					if got = served(t, a); got != nil {
						diff = gocmp.Diff(want, got)
					}
				}
				if diff != "" {
					t.Errorf("(-plan +agent):\n%s", diff)
				}
				compareMetrics(t, a, metrics)
			}
			compare(t, c.Metrics)
			for _, step := range c.Steps {
				w.apply(step.Apply)
				w.remove(step.Delete.Services, step.Delete.EndpointSlices)
				if step.Node != nil {
					w.node = *step.Node
				}
				w.write(t, dir)
				t.Run(step.Name, func(t *testing.T) { compare(t, step.Metrics) })
			}
		})
	}
}

// write puts the world where an agent reads it, in one step.
func (w *world) write(t *testing.T, dir string) {
	t.Helper()
	next := write(t, filepath.Dir(dir), "next", w.document(t))
	if err := os.Rename(next, filepath.Join(dir, "world.json")); err != nil {
		t.Fatal(err)
	}
}

// startAgent runs an agent with the settings of a case until the end of the test.
func startAgent(t *testing.T, c *acceptanceCase, dir string, w *world) *agent.Agent {
	t.Helper()
	w.write(t, dir)
	cfg := config.Defaults()
	cfg.NodeName, cfg.Kubernetes.Source, cfg.VPP.Mode, cfg.Etcd.Mode = c.Node.Name, config.SourceFilesPrefix+dir, config.VPPSimulated, config.EtcdNone
	cfg.Services.NodePortAddresses = c.Config.NodePortAddresses
	if len(cfg.Services.NodePortAddresses) == 0 {
		cfg.Services.NodePortAddresses = []string{"all"}
	}
	cfg.Services.ClusterCIDRs, cfg.Services.ServiceCIDRs, cfg.Services.MasqueradeAll = c.Config.ClusterCIDRs, c.Config.ServiceCIDRs, c.Config.MasqueradeAll
	cfg.API.HTTPAddress, cfg.API.ControlSocket, cfg.API.HealthzBindAddress = "127.0.0.1:0", "", ""
	a, err := agent.Start(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return a
}

// planned is the output of the command.
func (w *world) planned(t *testing.T) *planned {
	t.Helper()
	args := append([]string{"plan", "-f", "-", "--node-name", w.node.Name, "-o", "json"}, w.flags...)
	r := troupe(w.document(t), args...)
	if r.code != exitOK {
		t.Fatalf("exit code %d: %s", r.code, r.errs)
	}
	var report plan.Report
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatal(err)
	}
	return (&planned{report.Frontends, report.HealthChecks, report.Rows, report.Approximations}).ordered()
}

// served is the report of a settled agent; nil = it has not settled, or it does not answer.
func served(t *testing.T, a *agent.Agent) *planned {
	t.Helper()
	const condition = "without its session layer VPP answers with ICMP host unreachable"
	all := &planned{[]api.Frontend{}, []api.HealthCheck{}, []api.Row{}, []api.FrontendApproximation{}}
	services, err := a.Backend().Services(t.Context())
	if err != nil || !a.Backend().Readiness().Ready {
		return nil
	}
	for _, s := range services {
		detail, err := a.Backend().Service(t.Context(), s.Key)
		if err != nil || detail.State == api.ServicePending {
			return nil
		}
		all.Frontends = append(all.Frontends, detail.Wanted...)
		all.HealthChecks = append(all.HealthChecks, detail.HealthChecks...)
		all.Rows = append(all.Rows, detail.Rendered...)
		for _, a := range detail.Approximations {
			if fact, is := strings.CutPrefix(a.Why, routesvpp.NoSessionLayer+": VPP answers with ICMP host unreachable"); is {
				a.Why = condition + fact + "; with session { enable } VPP refuses them, except where its tables or listeners prevent it"
			}
			all.Approximations = append(all.Approximations, a)
		}
		for _, c := range detail.Conflicts {
			all.Approximations = append(all.Approximations, api.FrontendApproximation{
				Service: s.Key, Frontend: c.Frontend, Wanted: "forward", Rendered: "no row",
				Why: "the frontend belongs to " + c.Owner + ", which is older or has the smaller name",
			})
		}
	}
	return all.ordered()
}

// compareMetrics scrapes an agent.
func compareMetrics(t *testing.T, a *agent.Agent, want *caseMetrics) {
	t.Helper()
	if want == nil {
		return
	}
	w := httptest.NewRecorder()
	a.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	got := map[string]int{}
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), "} ")
		if labels, ok := strings.CutPrefix(series, "kubeproxy_sync_proxy_rules_no_local_endpoints_total{"); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			_, policy, _ := strings.Cut(labels, "traffic_policy=")
			got[policy] += n
		}
	}
	if wanted := map[string]int{`"internal"`: want.NoLocalEndpoints.Internal, `"external"`: want.NoLocalEndpoints.External}; !maps.Equal(wanted, got) {
		t.Errorf("no_local_endpoints is %v, want %v", got, wanted)
	}
}

// unusualCases are situations without an acceptance case that need a report.
func unusualCases() []*acceptanceCase {
	service := func(name, ip string, spec object) object {
		all := object{
			"type": "LoadBalancer", "clusterIP": ip, "clusterIPs": []string{ip}, "ipFamilies": []string{"IPv4"},
			"ports": []object{{"name": "http", "protocol": "TCP", "port": 80}},
		}
		maps.Copy(all, spec)
		return object{
			"metadata": object{"namespace": "a", "name": name, "uid": name, "creationTimestamp": "2026-01-02T03:04:05Z"}, "spec": all,
			"status": object{"loadBalancer": object{"ingress": []object{{"ip": "203.0.113.9", "ipMode": "VIP"}}}},
		}
	}
	slice := func(name, protocol string, endpoints int) object {
		var all []object
		for i := range endpoints {
			all = append(all, object{"addresses": []string{fmt.Sprintf("10.1.%d.%d", i/200, 1+i%200)}, "nodeName": fmt.Sprint("n", i%3)})
		}
		return object{
			"metadata":    object{"namespace": "a", "name": name + "-1", "labels": map[string]string{"kubernetes.io/service-name": name}},
			"addressType": "IPv4", "endpoints": all, "ports": []object{{"name": "http", "protocol": protocol, "port": 8080}},
		}
	}
	one := func(name string, objects objects) *acceptanceCase {
		c := &acceptanceCase{Name: name, objects: objects, Node: kubetest.Node{Name: "n1", Addresses: []string{"192.168.0.2"}}}
		c.Config.ServiceCIDRs, c.Config.ClusterCIDRs, c.Config.NodePortAddresses = []string{"10.96.0.0/16"}, []string{"10.1.0.0/16"}, []string{"primary"}
		return c
	}
	var ranges []string
	for i := range 4097 {
		ranges = append(ranges, fmt.Sprintf("100.%d.%d.0/25", i/256, i%256))
	}
	plain := object{}
	return []*acceptanceCase{
		one("two services want one address", objects{
			[]object{service("one", "10.96.0.1", plain), service("two", "10.96.0.2", plain)},
			[]object{slice("one", "TCP", 2), slice("two", "TCP", 2)},
		}),
		one("more endpoints than places", objects{[]object{service("one", "10.96.0.1", plain)}, []object{slice("one", "TCP", 300)}}),
		one("weights of 1", objects{[]object{service("one", "10.96.0.1", plain)}, []object{slice("one", "TCP", 128)}}),
		one("more source ranges than rules", objects{
			[]object{service("one", "10.96.0.1", object{"loadBalancerSourceRanges": ranges})}, []object{slice("one", "TCP", 2)},
		}),
		one("affinity, source ranges and UDP", objects{
			[]object{service("one", "10.96.0.1", object{
				"sessionAffinity": "ClientIP", "sessionAffinityConfig": object{"clientIP": object{"timeoutSeconds": 90}},
				"loadBalancerSourceRanges": []string{"198.51.100.0/24"}, "ports": []object{{"name": "http", "protocol": "UDP", "port": 80}},
			})},
			[]object{slice("one", "UDP", 2)},
		}),
		one("SCTP with source ranges", objects{
			[]object{service("one", "10.96.0.1", object{
				"loadBalancerSourceRanges": []string{"198.51.100.0/24"}, "ports": []object{{"name": "http", "protocol": "SCTP", "port": 80}},
			})},
			[]object{slice("one", "SCTP", 2)},
		}),
		one("no endpoints inside and outside of the service network", objects{[]object{service("one", "10.96.0.1", plain), service("two", "10.97.0.1", plain)}, nil}),
	}
}
