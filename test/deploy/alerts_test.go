package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/test/build"
)

// series are values by their text, a minute apart; the last one is of now.
type series map[string][]float64

// Querier satisfies storage.Queryable.
func (s series) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var found []storage.Series
		for text, values := range s {
			metric, err := parser.NewParser(parser.Options{}).ParseMetric(text)
			if err != nil {
				return storage.ErrSeriesSet(err)
			}
			if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(metric.Get(m.Name)) }) {
				continue
			}
			var samples []chunks.Sample
			for i, v := range values {
				samples = append(samples, sample{now.Add(time.Duration(i+1-len(values)) * time.Minute).UnixMilli(), v})
			}
			found = append(found, storage.NewListSeries(metric, samples))
		}
		return &set{series: found}
	}}, nil
}

// sample is a value at a time in milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.value }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

// set is a list of series.
type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                        { s.at++; return s.at <= len(s.series) }
func (s *set) At() storage.Series                { return s.series[s.at-1] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

var now = time.Unix(1_800_000_000, 0)

// rule is an alert in rules.yaml.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func rules(t *testing.T) map[string]rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(build.Root(), "deploy", "kubernetes", "components", "monitoring", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Spec struct {
			Groups []struct {
				Rules []rule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	byName := map[string]rule{}
	for _, g := range file.Spec.Groups {
		for _, r := range g.Rules {
			byName[r.Alert] = r
		}
	}
	return byName
}

// evaluate returns the labels of the series that an expression has now, as text without name and
// value.
func evaluate(t *testing.T, expression string, have series) []string {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), MaxSamples: 1 << 20, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
	})
	query, err := engine.NewInstantQuery(context.Background(), have, nil, expression, now)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	var found []string
	for _, sample := range vector {
		found = append(found, labels.NewBuilder(sample.Metric).Del("__name__").Labels().String())
	}
	slices.Sort(found)
	return found
}

// rising is a counter that grows by step each minute for half an hour, flat one that does not.
func rising(step float64) (values []float64) {
	for i := range 31 {
		values = append(values, float64(i)*step)
	}
	return values
}

// TestAlerts: when each alert fires, and for which node.
func TestAlerts(t *testing.T) {
	flat := rising(0)
	const n1, n2 = `node="n1"`, `node="n2"`
	slow := func(node string, within float64) series {
		name := "kubeproxy_network_programming_duration_seconds_bucket"
		return series{
			name + `{` + node + `,ip_family="IPv4",le="1"}`: rising(within), name + `{` + node + `,ip_family="IPv4",le="20"}`: rising(100),
			name + `{` + node + `,ip_family="IPv4",le="+Inf"}`: rising(100),
		}
	}
	cases := map[string]struct {
		quiet, fires series
		want         string
	}{
		"TroupeAgentDown": {
			series{`up{job="troupe-system/troupe-agent",` + n1 + `}`: {1}, `up{job="other",` + n2 + `}`: {0}},
			series{`up{job="troupe-system/troupe-agent",` + n1 + `}`: {0}},
			`{job="troupe-system/troupe-agent", node="n1"}`,
		},
		"TroupeAgentsAbsent": {
			series{`up{job="troupe-system/troupe-agent",` + n1 + `}`: {0}},
			series{`up{job="other",` + n1 + `}`: {1}},
			`{job="troupe-system/troupe-agent"}`,
		},
		"TroupePartNotReady": {
			series{`troupe_ready{part="nat44",` + n1 + `}`: {1}},
			series{`troupe_ready{part="nat44",` + n1 + `}`: {0}, `troupe_ready{part="link",` + n1 + `}`: {1}},
			`{node="n1", part="nat44"}`,
		},
		"TroupeServicesNotInVPP": {
			series{`troupe_services{state="failed",` + n1 + `}`: {0}, `troupe_services{state="in-sync",` + n1 + `}`: {5}, `troupe_services{state="not-served",` + n1 + `}`: {5}},
			series{`troupe_services{state="failed",` + n1 + `}`: {1}, `troupe_services{state="pending",` + n1 + `}`: {0}},
			`{node="n1"}`,
		},
		"TroupeNoInterface": {
			series{`troupe_unplaced_addresses{` + n1 + `}`: {0}},
			series{`troupe_unplaced_addresses{` + n1 + `}`: {2}, `troupe_unplaced_addresses{` + n2 + `}`: {0}},
			`{node="n1"}`,
		},
		"TroupeAnswersLost": {
			series{`troupe_answers_alarm{` + n1 + `}`: {0}},
			series{`troupe_answers_alarm{` + n1 + `}`: {1}, `troupe_answers_alarm{` + n2 + `}`: {0}},
			`{node="n1"}`,
		},
		"TroupeServicesNotServed": {
			series{`troupe_services{state="not-served",` + n1 + `}`: {0}, `troupe_services{state="failed",` + n1 + `}`: {5}},
			series{`troupe_services{state="not-served",` + n1 + `}`: {2}, `troupe_services{state="partly",` + n1 + `}`: {1}},
			`{node="n1"}`,
		},
		"TroupeActorsRestart": {
			series{`troupe_actor_restarts_total{kind="service",` + n1 + `}`: rising(0.2)},
			series{`troupe_actor_restarts_total{kind="service",` + n1 + `}`: rising(1)},
			`{kind="service", node="n1"}`,
		},
		"TroupeDrift": {
			series{`troupe_drift_total{renderer="nat44",` + n1 + `}`: flat},
			series{`troupe_drift_total{renderer="nat44",` + n1 + `}`: append(slices.Clone(flat[:30]), 1)},
			`{node="n1", renderer="nat44"}`,
		},
		"TroupeVPPRefuses": {
			series{`troupe_vpp_operations_total{outcome="succeeded",renderer="nat44",` + n1 + `}`: rising(5), `troupe_vpp_operations_total{outcome="failed",renderer="nat44",` + n1 + `}`: flat},
			series{`troupe_vpp_operations_total{outcome="unknown",renderer="nat44",` + n1 + `}`: rising(1)},
			`{node="n1", renderer="nat44"}`,
		},
		"TroupeVPPFlaps": {
			series{`troupe_vpp_connections_total{` + n1 + `}`: rising(0.1)},
			series{`troupe_vpp_connections_total{` + n1 + `}`: rising(1)},
			`{node="n1"}`,
		},
		"TroupeVPPMemory": {
			series{`troupe_vpp_memory_waiting{renderer="cnat",` + n1 + `}`: {0}},
			series{`troupe_vpp_memory_waiting{renderer="cnat",` + n1 + `}`: {7}, `troupe_vpp_memory_waiting{renderer="nat44",` + n1 + `}`: {0}},
			`{node="n1"}`,
		},
		"TroupeServesFromMirror": {
			series{`troupe_mirror_serving{` + n1 + `}`: {0}}, series{`troupe_mirror_serving{` + n1 + `}`: {1}}, `{node="n1"}`,
		},
		"TroupeMirrorNotSaved": {
			series{`troupe_mirror_refused_total{why="failed",` + n1 + `}`: flat, `troupe_mirror_refused_total{why="empty",` + n1 + `}`: rising(1)},
			series{`troupe_mirror_refused_total{why="failed",` + n1 + `}`: rising(1)},
			`{node="n1", why="failed"}`,
		},
		"TroupeNATSessionsFull": {
			series{`troupe_nat_session_alarm{` + n1 + `}`: {0}}, series{`troupe_nat_session_alarm{` + n1 + `}`: {1}}, `{node="n1"}`,
		},
		"TroupeCNATSessionsFull": {
			series{`troupe_cnat_session_alarm{` + n1 + `}`: {0}}, series{`troupe_cnat_session_alarm{` + n1 + `}`: {1}}, `{node="n1"}`,
		},
		"TroupeHostRouteMissing": {
			series{`troupe_host_routes{state="kept",` + n1 + `}`: {1}, `troupe_host_routes{state="foreign",` + n1 + `}`: {0}},
			series{`troupe_host_routes{state="foreign",` + n1 + `}`: {1}, `troupe_host_routes{state="failed",` + n1 + `}`: {0}},
			`{node="n1"}`,
		},
		"TroupeAddressUnowned": {
			series{`troupe_address_owner{address="192.0.2.1",` + n1 + `}`: {1}, `troupe_address_owner{address="192.0.2.1",` + n2 + `}`: {0}},
			series{`troupe_address_owner{address="192.0.2.1",` + n1 + `}`: {0}, `troupe_address_owner{address="192.0.2.1",` + n2 + `}`: {0}, `troupe_address_owner{address="192.0.2.2",` + n2 + `}`: {1}},
			`{address="192.0.2.1"}`,
		},
		"TroupeAddressOwnedTwice": {
			series{`troupe_address_owner{address="192.0.2.1",` + n1 + `}`: {1}, `troupe_address_owner{address="192.0.2.1",` + n2 + `}`: {0}},
			series{`troupe_address_owner{address="192.0.2.1",` + n1 + `}`: {1}, `troupe_address_owner{address="192.0.2.1",` + n2 + `}`: {1}},
			`{address="192.0.2.1"}`,
		},
		"TroupeAddressFlaps": {
			series{`troupe_address_owner{address="192.0.2.1",` + n1 + `}`: {0, 1, 1, 1, 1}},
			series{`troupe_address_owner{address="192.0.2.1",` + n1 + `}`: {0, 1, 0, 1, 0, 1, 0, 1, 0, 1}},
			`{address="192.0.2.1", node="n1"}`,
		},
		"TroupeServicesWithoutAddress": {
			series{"troupe_addresses_services_without_address": {0}}, series{"troupe_addresses_services_without_address": {2}}, "{}",
		},
		"TroupePoolNearlyEmpty": {
			series{`troupe_addresses_pool_free{pool="a"}`: {1}, `troupe_addresses_pool_given{pool="a"}`: {8}},
			series{`troupe_addresses_pool_free{pool="a"}`: {0}, `troupe_addresses_pool_given{pool="a"}`: {8}, `troupe_addresses_pool_free{pool="b"}`: {8}, `troupe_addresses_pool_given{pool="b"}`: {0}},
			`{pool="a"}`,
		},
		"TroupePoolRefused": {
			series{`troupe_addresses_pool_refused{pool="a"}`: {0}}, series{`troupe_addresses_pool_refused{pool="a"}`: {1}}, `{pool="a"}`,
		},
		"TroupeSlow": {slow(n1, 100), slow(n2, 90), `{node="n2"}`},
	}
	all := rules(t)
	for name, r := range all {
		tc, tested := cases[name]
		if !tested {
			t.Errorf("alert %s has no test", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			if got := evaluate(t, r.Expr, tc.quiet); len(got) > 0 {
				t.Errorf("fires for %v", got)
			}
			if got := evaluate(t, r.Expr, tc.fires); !slices.Equal(got, []string{tc.want}) {
				t.Errorf("fires for %v, want %s", got, tc.want)
			}
			if r.Annotations["summary"] == "" || r.Labels["severity"] == "" {
				t.Error("no summary or no severity")
			}
			if !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/operations.md#alerts") {
				t.Errorf("runbook %q", r.Annotations["runbook_url"])
			}
		})
	}
	if len(all) != len(cases) {
		t.Errorf("%d alerts, %d tests", len(all), len(cases))
	}
}

// TestMetricsExist: the agent and the allocator have every metric that alerts and the dashboard
// name, and docs/operations.md says what to do about each alert.
func TestMetricsExist(t *testing.T) {
	var expressions []string
	operations, err := os.ReadFile(filepath.Join(build.Root(), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range rules(t) {
		expressions = append(expressions, r.Expr)
		if !strings.Contains(string(operations), "| `"+name+"` |") {
			t.Errorf("docs/operations.md does not say what to do about %s", name)
		}
	}
	text, err := os.ReadFile(filepath.Join(build.Root(), "deploy", "kubernetes", "components", "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(target.Expr, "$node", "n1")); err != nil {
				t.Errorf("%s: %v", target.Expr, err)
			}
			expressions = append(expressions, target.Expr)
		}
	}
	if len(dashboard.Panels) == 0 {
		t.Fatal("the dashboard has no panels")
	}
	have := scrape(t)
	allocator, err := os.ReadFile(filepath.Join(build.Root(), "bootstrap", "addresses", "metrics.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range expressions {
		for _, metric := range regexp.MustCompile(`\b(troupe|kubeproxy|process)_[a-z_]+`).FindAllString(e, -1) {
			if name, its := strings.CutPrefix(metric, "troupe_addresses_"); its {
				if !strings.Contains(string(allocator), `describe("`+name+`"`) {
					t.Errorf("%s: the allocator has no metric %s", e, metric)
				}
			} else if family := strings.TrimSuffix(metric, "_bucket"); !strings.Contains(have, "# TYPE "+family+" ") {
				t.Error(fmt.Errorf("%s: the agent has no metric %s", e, family))
			}
		}
	}
}
