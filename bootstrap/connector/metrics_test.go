package connector

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scraped are the values of all metrics, by name and labels.
func scraped(t *testing.T, c *Connector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics{c.board})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
		for _, m := range f.GetMetric() {
			series := f.GetName()
			for _, l := range m.GetLabel() {
				series += " " + l.GetName() + "=" + l.GetValue()
			}
			values[series] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// values returns the metrics of a connector with so many services; one of them cannot be written,
// and each has an instance that is refused.
func values(t *testing.T, services int) map[string]float64 {
	catalog, objects := filepath.Join(t.TempDir(), "catalog.yaml"), t.TempDir()
	text := strings.Builder{}
	text.WriteString("services:\n")
	for i := range services {
		fmt.Fprintf(&text, "- {name: s%d, ports: [{name: http, port: 80}], instances: [{address: 192.0.2.1, ports: {http: 8080}}, {address: 127.0.0.1, ports: {http: 8080}}]}\n", i)
	}
	if err := os.WriteFile(catalog, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(objects, "service-s0.yaml"), 0o700); err != nil {
		// no file can be written there
		t.Fatal(err)
	}
	c, err := Start(&Config{
		Sources: []string{"yaml=" + catalog}, Namespace: "outside", Output: OutputDirect, Directory: objects,
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}, DeleteLimit: 30,
	}, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	deadline := time.Now().Add(time.Minute)
	for {
		got := scraped(t, c)
		if got["troupe_connector_services"] == float64(services) && got["troupe_connector_writes_total"] == float64(2*(services-1)) && got["troupe_connector_services_failing"] == 1 {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("not written: %v", got)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestMetrics: a scrape has every metric with the right value, and more services make no further
// series.
func TestMetrics(t *testing.T) {
	few, many := values(t, 2), values(t, 200)
	for _, got := range []map[string]float64{few, many} {
		for _, name := range []string{"troupe_connector_source_last_answer_timestamp_seconds source=yaml", "troupe_connector_writes_failed_total reason=unavailable"} {
			if got[name] == 0 { // the number and the times of the attempts do not matter here
				t.Errorf("no %s", name)
			}
			delete(got, name)
		}
		// a pass may see the directory as it was before the last writes
		delete(got, "troupe_connector_writes_failed_total reason=exists")
	}
	want := func(services float64) map[string]float64 {
		return map[string]float64{
			"troupe_connector_leading": 1, "troupe_connector_services": services, "troupe_connector_services_pending": 1, "troupe_connector_services_failing": 1,
			"troupe_connector_writes_total": 2 * (services - 1), "troupe_connector_source_services source=yaml": services,
			"troupe_connector_source_complete source=yaml": 1, "troupe_connector_source_held source=yaml": 0,
			"troupe_connector_source_waiting source=yaml": 0, "troupe_connector_problems reason=loopback": services,
		}
	}
	if !maps.Equal(few, want(2)) || !maps.Equal(many, want(200)) {
		t.Errorf("2 services: %v\n200 services: %v", few, many)
	}
}
