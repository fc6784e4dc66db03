package agent

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// crowd is the configuration of an agent with this many services of two endpoints.
func crowd(t testing.TB, services int) *config.Agent {
	t.Helper()
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {podCIDR: 10.1.0.0/24}\nstatus: {addresses: [{type: InternalIP, address: 192.168.16.1}]}\n")
	for i := range services {
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: Service
metadata: {name: s%[1]d, namespace: shop, uid: u%[1]d}
spec: {clusterIP: 10.96.%[2]d.%[3]d, clusterIPs: [10.96.%[2]d.%[3]d], ports: [{port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s%[1]d-a, namespace: shop, labels: {kubernetes.io/service-name: s%[1]d}}
addressType: IPv4
ports: [{name: "", port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.1.0.3], conditions: {ready: true}}, {addresses: [10.1.0.4], conditions: {ready: true}}]
`, i, 1+i/250, 1+i%250)
	}
	dir, work := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Defaults()
	cfg.NodeName, cfg.Kubernetes.Source, cfg.VPP.Mode = "n1", config.SourceFilesPrefix+dir, config.VPPSimulated
	cfg.NodeStore.Type, cfg.DataDir = "none", work
	cfg.Services.ServiceCIDRs, cfg.Services.ClusterCIDRs = []string{"10.96.0.0/16"}, []string{"10.1.0.0/16"}
	cfg.API.HTTPAddress, cfg.API.ControlSocket, cfg.API.HealthzBindAddress = "127.0.0.1:0", "", ""
	return cfg
}

// TestSeriesDoNotGrowWithServices: labels are kinds, states and renderers, never services; so that
// a cluster of any size costs a scrape the same. There are no exemplars.
func TestSeriesDoNotGrowWithServices(t *testing.T) {
	// of actors: which of them are busy at the moment is chance
	state := regexp.MustCompile(`,state="[^"]*"`)
	series := func(services int) map[string]bool {
		a := run(t, crowd(t, services))
		ready(t, a)
		eventually(t, "services in sync", func() bool { return scrape(t, a)[`troupe_services{state="in-sync"}`] == fmt.Sprint(services) })
		out := map[string]bool{}
		for one, value := range scrape(t, a) {
			if strings.Contains(value, "#") {
				t.Errorf("%s has an exemplar: %s", one, value)
			}
			out[state.ReplaceAllString(one, "")] = true
		}
		return out
	}
	if diff := cmp.Diff(series(5), series(400)); diff != "" {
		t.Errorf("series (-with 5 +with 400 services):\n%s", diff)
	}
}

// BenchmarkPage measures a page of the API with 10,000 services, over TCP.
func BenchmarkPage(b *testing.B) {
	a, err := Start(crowd(b, 10_000), quiet())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			b.Error(err)
		}
	}()
	for !a.Backend().Readiness().Ready {
		if err := b.Context().Err(); err != nil {
			b.Fatal(err)
		}
	}
	for _, target := range []string{"services", "services?limit=1000", "services/shop/s77", "actors", "top?by=busy", "tree", "packet?source=10.1.0.3&destination=10.96.1.1:80/TCP", "events"} {
		b.Run(target, func(b *testing.B) {
			for b.Loop() {
				response, err := http.Get("http://" + a.HTTPAddress() + "/api/v1/" + target)
				if err != nil {
					b.Fatal(err)
				}
				text, err := io.ReadAll(response.Body)
				if _ = response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
					b.Fatalf("%v: %s: %.200s", err, response.Status, text)
				}
			}
		})
	}
}
