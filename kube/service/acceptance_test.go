package service_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// orders is the number of different orders of the input for each case. The first one is the order
// of names.
const orders = 4

// reduced lists the entries of the file that this test can evaluate only in part, with the reasons.
// No entry is left out silently: pure values are evaluated, and the test prints the number of
// reduced entries.
var reduced = map[string]string{
	"synced":       "the gate before the first write is the registry's; here nothing is resolved, so what was there stays",
	"touched":      "writes are the renderers'; here the frontends that two sets of rows treat differently",
	"healthChecks": "the listener is the health-check server's; here port, addresses and the complete HTTP answer",
	"exact level":  "flows of a service without endpoints stay there, a known bug; here they end",
}

// tally counts the evaluated entries.
type tally struct {
	cases, steps, rows, packets, healthChecks, metrics, flows, cleanups, touched int
	reduced                                                                      map[string]int
}

// TestAcceptance runs every case of the unedited acceptance file.
func TestAcceptance(t *testing.T) {
	file := kubetest.Load(t)
	done := tally{reduced: map[string]int{}}
	seen := map[string]bool{}
	for i := range file.Cases {
		c := &file.Cases[i]
		if c.Name == "" || seen[c.Name] {
			t.Fatalf("case %d: name %q is empty or not unique", i, c.Name)
		}
		seen[c.Name] = true
		t.Run(c.Name, func(t *testing.T) {
			t.Logf("%s (%s)", c.Description, c.Source)
			for order := range orders {
				var shuffle *rand.Rand
				count := &tally{reduced: map[string]int{}}
				if order == 0 {
					count = &done
				} else {
					shuffle = rand.New(rand.NewPCG(uint64(order), uint64(i)))
				}
				runCase(t, c, shuffle, count)
			}
		})
	}
	t.Logf("%s: %d cases, %d steps, %d rows, %d packets, %d health checks, %d metrics, %d UDP flows, %d clean-up decisions, %d touched lists",
		file.Kubernetes, done.cases, done.steps, done.rows, done.packets, done.healthChecks, done.metrics, done.flows, done.cleanups, done.touched)
	for field, reason := range reduced {
		t.Logf("evaluated as far as values go: %-12s %2d times: %s", field, done.reduced[field], reason)
	}
}

// run is one case in one order.
type run struct {
	*testing.T
	world *world
	tally *tally
	exact bool
	// inputs and rows belong to the last sync.
	inputs map[string]*messages.ServiceInput
	rows   []*messages.Frontend
}

func runCase(t *testing.T, c *kubetest.Case, shuffle *rand.Rand, done *tally) {
	t.Helper()
	r := &run{T: t, world: &world{objects: newObjects(t, c), t: t, healthy: true, shuffle: shuffle}, tally: done}
	switch c.Level {
	case "":
	case "kube-proxy-1.36-exact":
		r.exact = true
		done.reduced["exact level"]++
	default:
		t.Fatalf("unknown level %q", c.Level)
	}
	for _, row := range c.Preexisting {
		r.rows = append(r.rows, parse(t, row))
	}
	synced := c.Synced == nil || c.Synced.Services && c.Synced.EndpointSlices
	if !synced {
		done.reduced["synced"]++
	}
	done.cases++
	r.check("start", &c.Outcome, synced)
	for i := range c.Steps {
		s := &c.Steps[i]
		r.world.Do(s)
		if s.ProxyHealthy != nil {
			r.world.healthy = *s.ProxyHealthy
		}
		done.steps++
		r.check(s.Name, &s.Outcome, true)
	}
}

// check runs one sync and compares the result with the outcome.
func (r *run) check(step string, o *kubetest.Outcome, synced bool) {
	r.Helper()
	var views []*messages.ServiceView
	inputs, rows := r.inputs, r.rows
	if synced {
		inputs = r.world.inputs()
		views = r.world.views(inputs)
		rows = rowsOf(views)
	}
	r.checkRows(step, rows, o.Expect)
	r.checkPackets(step, views, o.Packets)
	r.checkHealth(step, views, o.HealthChecks)
	r.checkMetrics(step, views, o.Metrics)
	r.checkFlows(step, views, o.UDPFlows)
	if o.UDPFlowCleanupRequired != nil {
		r.tally.cleanups++
		if got := kubetest.CleanupRequired(r.inputs, inputs); got != *o.UDPFlowCleanupRequired {
			r.Errorf("%s: UDP flow clean-up required is %t", step, got)
		}
	}
	if o.Touched != nil {
		r.tally.touched++
		r.tally.reduced["touched"]++
		for _, frontend := range changedFrontends(r.rows, rows) {
			if !slices.Contains(*o.Touched, frontend) {
				r.Errorf("%s: %s changed, only %v may", step, frontend, *o.Touched)
			}
		}
	}
	r.inputs, r.rows = inputs, rows
}

func (r *run) checkRows(step string, rows []*messages.Frontend, expect []kubetest.Row) {
	r.Helper()
	got := make([]kubetest.Row, len(rows))
	for i, row := range rows {
		got[i] = render(row)
	}
	want := make([]kubetest.Row, len(expect))
	for i, row := range expect {
		want[i] = normalForm(row)
	}
	slices.SortFunc(got, compareRows)
	slices.SortFunc(want, compareRows)
	r.tally.rows += len(want)
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("%s: rows (-want +got):\n%s", step, diff)
	}
}

func (r *run) checkPackets(step string, views []*messages.ServiceView, packets []kubetest.Packet) {
	r.Helper()
	table := service.NewTable(views, r.world.Node, r.world.Config)
	for _, p := range packets {
		if p.Level != "MUST" && p.Level != "nftables" {
			r.Errorf("%s: unknown level %q", step, p.Level)
		}
		r.tally.packets++
		where, protocol, err := service.ParseFrontendText(p.Dst)
		if err != nil {
			r.Fatal(err)
		}
		verdict := table.Verdict(service.Packet{Source: netip.MustParseAddr(p.Src), Destination: where, Protocol: protocol})
		name := step + ": " + p.Name + " " + p.Src + " -> " + p.Dst
		if got := verdict.Word(); got != p.Action {
			r.Errorf("%s: %s, want %s", name, got, p.Action)
		}
		if diff := cmp.Diff(*sortedSet(p.Endpoints), backendTexts(verdict.Backends)); diff != "" {
			r.Errorf("%s: endpoints (-want +got):\n%s", name, diff)
		}
		if verdict.Masquerade && len(verdict.Backends) == 0 {
			r.Errorf("%s: masqueraded without a backend", name)
		}
		for _, backend := range verdict.Backends {
			if got := verdict.Masquerades(backend); got != p.Masquerade {
				r.Errorf("%s: masqueraded to %s: %t, want %t", name, service.BackendText(backend), got, p.Masquerade)
			}
		}
	}
}

func (r *run) checkHealth(step string, views []*messages.ServiceView, checks []kubetest.HealthCheck) {
	r.Helper()
	for _, want := range checks {
		r.tally.healthChecks++
		r.tally.reduced["healthChecks"]++
		var found []*messages.HealthCheck
		for _, view := range views {
			if view.GetKey() == want.Service {
				found = append(found, view.GetHealthChecks()...)
			}
		}
		if want.Listen != nil && !*want.Listen {
			if len(found) != 0 {
				r.Errorf("%s: %s has health checks %v, want none", step, want.Service, found)
			}
			continue
		}
		if len(found) != 1 {
			r.Errorf("%s: %s has health checks %v, want one", step, want.Service, found)
			continue
		}
		r.checkAnswer(step, want, found[0])
	}
}

func (r *run) checkAnswer(step string, want kubetest.HealthCheck, got *messages.HealthCheck) {
	r.Helper()
	answer := service.HealthAnswer(want.Service, got, r.world.healthy)
	if got.GetPort() != want.Port || got.GetLocalEndpoints() != want.LocalEndpoints || answer.Status != want.Status {
		r.Errorf("%s: %s: port %d, %d local endpoints, status %d, want %d, %d, %d", step, want.Service,
			got.GetPort(), got.GetLocalEndpoints(), answer.Status, want.Port, want.LocalEndpoints, want.Status)
	}
	if want.ListenAddresses != nil {
		if diff := cmp.Diff(*sortedSet(want.ListenAddresses), *sortedSet(got.GetListenAddresses())); diff != "" {
			r.Errorf("%s: %s: listen addresses (-want +got):\n%s", step, want.Service, diff)
		}
	}
	for name, value := range want.Headers {
		if answer.Header.Get(name) != value {
			r.Errorf("%s: %s: header %s is %q, want %q", step, want.Service, name, answer.Header.Get(name), value)
		}
	}
	if want.Body != nil {
		if diff := cmp.Diff(decodeAny(r.T, want.Body), decodeAny(r.T, answer.Body)); diff != "" {
			r.Errorf("%s: %s: body (-want +got):\n%s", step, want.Service, diff)
		}
	}
}

func decodeAny(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func (r *run) checkMetrics(step string, views []*messages.ServiceView, want *kubetest.Metrics) {
	r.Helper()
	if want == nil {
		return
	}
	r.tally.metrics++
	var got kubetest.Metrics
	for _, view := range views {
		got.NoLocalEndpoints.Internal += view.GetNoLocalIpv4().GetInternal() + view.GetNoLocalIpv6().GetInternal()
		got.NoLocalEndpoints.External += view.GetNoLocalIpv4().GetExternal() + view.GetNoLocalIpv6().GetExternal()
	}
	if got != *want {
		r.Errorf("%s: no_local_endpoints %+v, want %+v", step, got.NoLocalEndpoints, want.NoLocalEndpoints)
	}
}

// checkFlows asks the rows whether a flow to an endpoint ends. Level exact keeps the flows of a
// service without a serving endpoint; the rows end them, as versions of kube-proxy after 1.36 do.
func (r *run) checkFlows(step string, views []*messages.ServiceView, flows []kubetest.Flow) {
	r.Helper()
	for _, want := range flows {
		r.tally.flows++
		where, ofUDP := strings.CutSuffix(want.Dst, "/UDP")
		if !ofUDP {
			r.Fatalf("%s: flow to %s", step, want.Dst)
		}
		f := flow{where, strings.TrimSuffix(want.Endpoint, "/UDP")}
		ends := slices.ContainsFunc(views, func(view *messages.ServiceView) bool { return len(endedFlows(view, f)) > 0 })
		if expected := want.Deleted || r.exact; ends != expected {
			r.Errorf("%s: flow %s -> %s ends: %t, want %t", step, want.Dst, want.Endpoint, ends, expected)
		}
		if r.exact && (want.Deleted || hasEndpoints(views, want.Dst)) {
			r.Errorf("%s: flow %s -> %s: level exact is for services without endpoints", step, want.Dst, want.Endpoint)
		}
	}
}

// hasEndpoints reports whether a row of the frontend has an endpoint, for new or old connections.
func hasEndpoints(views []*messages.ServiceView, frontend string) bool {
	return slices.ContainsFunc(rowsOf(views), func(row *messages.Frontend) bool {
		return service.FrontendText(row) == frontend && len(row.GetBackends())+len(row.GetDraining()) > 0
	})
}
