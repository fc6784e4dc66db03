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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/kubetest/casefile"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// TestAcceptance runs every case with health checks, from the API objects to the answer over HTTP.
func TestAcceptance(t *testing.T) {
	cases, expectations, requests := 0, 0, 0
	for _, c := range casefile.Load(t).Cases {
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

// cluster is the accumulated state of one case.
type cluster struct {
	*world
	healthy  atomic.Bool
	config   service.Config
	node     *messages.NodeContext
	services map[string]*messages.Service
	slices   map[string]*messages.EndpointSlice
	requests int
}

func runCase(t *testing.T, c *casefile.Case) int {
	t.Helper()
	k := &cluster{services: map[string]*messages.Service{}, slices: map[string]*messages.EndpointSlice{}}
	k.healthy.Store(true)
	k.world = start(t, Config{Healthy: k.healthy.Load})
	addresses, err := service.ParseNodePortAddresses(c.Config.NodePortAddresses)
	if err != nil {
		t.Fatal(err)
	}
	k.config.NodePortAddresses = addresses
	k.setNode(&c.Node)
	k.apply(&c.Objects)
	k.check("start", c.HealthChecks)
	for i := range c.Steps {
		s := &c.Steps[i]
		k.apply(&s.Apply)
		for _, key := range s.Delete.Services {
			delete(k.services, key)
		}
		for _, key := range s.Delete.EndpointSlices {
			delete(k.slices, key)
		}
		if s.Node != nil {
			k.setNode(s.Node)
		}
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

func (k *cluster) setNode(n *casefile.Node) {
	k.Helper()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	for _, text := range n.Addresses {
		object.Status.Addresses = append(object.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: text})
	}
	node, problems := normalize.Node("case", object)
	if len(problems) > 0 {
		k.Fatalf("node: %v", problems)
	}
	k.node = &messages.NodeContext{Node: node, Addresses: n.Addresses}
}

func (k *cluster) apply(objects *casefile.Objects) {
	k.Helper()
	for i := range objects.Services {
		s, problems := normalize.Service("case", &objects.Services[i])
		if len(problems) > 0 {
			k.Errorf("service: %v", problems)
		}
		k.services[normalize.ServiceKey(s)] = s
	}
	for i := range objects.EndpointSlices {
		s, problems := normalize.EndpointSlice("case", &objects.EndpointSlices[i])
		if len(problems) > 0 {
			k.Errorf("slice: %v", problems)
		}
		k.slices[normalize.SliceKey(s)] = s
	}
}

// checks returns the checks of all services, for the servers.
func (k *cluster) checks() []Check {
	var want []Check
	for _, key := range slices.Sorted(maps.Keys(k.services)) {
		in := &messages.ServiceInput{Key: key, Service: k.services[key]}
		for _, slice := range slices.Sorted(maps.Keys(k.slices)) {
			if normalize.SliceOwner(k.slices[slice]) == key {
				in.Slices = append(in.Slices, k.slices[slice])
			}
		}
		want = append(want, Checks(service.Resolve(in, k.node, k.config))...)
	}
	return want
}

// check runs one sync and compares the listeners and their answers with the case.
func (k *cluster) check(step string, checks []casefile.HealthCheck) {
	k.Helper()
	k.set(k.checks()...)
	for i := range checks {
		k.compare(step, &checks[i])
	}
}

func (k *cluster) compare(step string, want *casefile.HealthCheck) {
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

func (k *cluster) compareAnswer(step string, want *casefile.HealthCheck, got answer) {
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
