package healthcheck

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/service"
)

// TestAcceptance runs every case with health checks, from the API objects to the answer over HTTP.
func TestAcceptance(t *testing.T) {
	cases, expectations, requests := 0, 0, 0
	for _, c := range kubetest.Load(t).Cases {
		said := len(c.HealthChecks)
		for i := range c.Steps {
			said += len(c.Steps[i].HealthChecks)
		}
		if said == 0 {
			continue
		}
		cases++
		expectations += said
		t.Run(c.Name, func(t *testing.T) {
			requests += runCase(t, &c)
		})
	}
	t.Logf("%d cases with %d expectations, %d requests", cases, expectations, requests)
	if expectations == 0 {
		t.Error("no case says anything of health checks")
	}
}

// cluster is one case with its servers.
type cluster struct {
	*world
	state    *kubetest.World
	healthy  atomic.Bool
	requests int
}

func runCase(t *testing.T, c *kubetest.Case) int {
	t.Helper()
	k := &cluster{state: kubetest.NewWorld(t, c)}
	k.healthy.Store(true)
	k.world = start(t, Config{Healthy: k.healthy.Load})
	k.check("start", c.HealthChecks)
	for i := range c.Steps {
		s := &c.Steps[i]
		k.state.Do(s)
		if s.ProxyHealthy != nil {
			k.healthy.Store(*s.ProxyHealthy)
		}
		k.check(s.Name, s.HealthChecks)
	}
	if lines := k.told(); len(lines) > 0 {
		t.Errorf("problems: %q", lines)
	}
	return k.requests
}

// checks returns the checks of all services, for the servers.
func (k *cluster) checks() []Check {
	var want []Check
	inputs := k.state.Inputs()
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		want = append(want, Checks(service.Resolve(inputs[key], k.state.Node, k.state.Config))...)
	}
	return want
}

// check runs one sync and compares the listeners and their answers with the case.
func (k *cluster) check(step string, checks []kubetest.HealthCheck) {
	k.Helper()
	k.set(k.checks()...)
	for i := range checks {
		k.compare(step, &checks[i])
	}
}

func (k *cluster) compare(step string, want *kubetest.HealthCheck) {
	k.Helper()
	var listening []string
	for _, port := range k.servers.Status().Ports {
		if port.Service == want.Service {
			listening = append(listening, port.Address.String())
			if !port.Listening || uint32(port.Address.Port()) != want.Port {
				k.Errorf("%s: %s: %+v, want port %d", step, want.Service, port, want.Port)
			}
		}
	}
	if want.Listen != nil && !*want.Listen {
		if len(listening) > 0 {
			k.Errorf("%s: %s listens on %v", step, want.Service, listening)
		}
		return
	}
	if len(listening) == 0 {
		k.Errorf("%s: %s does not listen", step, want.Service)
	}
	if want.ListenAddresses != nil {
		if diff := cmp.Diff(want.ListenAddresses, listening); diff != "" {
			k.Errorf("%s: %s: listen addresses (-want +got):\n%s", step, want.Service, diff)
		}
	}
	for _, address := range listening {
		if netip.MustParseAddrPort(address).Addr().IsUnspecified() {
			k.Errorf("%s: %s listens on %s", step, want.Service, address)
		}
		k.requests++
		k.compareAnswer(step, want, k.ask(http.MethodGet, address, "/any/path"))
	}
}

func (k *cluster) compareAnswer(step string, want *kubetest.HealthCheck, got answer) {
	k.Helper()
	var body struct {
		LocalEndpoints uint32 `json:"localEndpoints"`
	}
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		k.Errorf("%s: %s: body %q: %v", step, want.Service, got.body, err)
	}
	if got.status != want.Status || body.LocalEndpoints != want.LocalEndpoints {
		k.Errorf("%s: %s: %d %s, want %d, %d local endpoints", step, want.Service, got.status, got.body, want.Status, want.LocalEndpoints)
	}
	for name, value := range want.Headers {
		if got.header.Get(name) != value {
			k.Errorf("%s: %s: header %s is %q, want %q", step, want.Service, name, got.header.Get(name), value)
		}
	}
	if want.Body != nil {
		var wanted, actual any
		if err := errors.Join(json.Unmarshal(want.Body, &wanted), json.Unmarshal([]byte(got.body), &actual)); err != nil {
			k.Fatal(err)
		}
		if diff := cmp.Diff(wanted, actual); diff != "" {
			k.Errorf("%s: %s: body (-want +got):\n%s", step, want.Service, diff)
		}
	}
}
