package bootstrap

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/plan"
	"github.com/troupe-vpp/troupe/kube/kubetest"
)

// object is an API object as the acceptance cases hold it.
type object map[string]any

// key returns namespace/name.
func (o object) key() string {
	meta, _ := o["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	return namespace + "/" + name
}

// objects are the objects that a case or a step brings.
type objects struct {
	Services       []object `json:"services"`
	EndpointSlices []object `json:"endpointSlices"`
}

// check is the condition after a case or step.
type check struct {
	Expect []struct {
		api.Frontend
		Reject bool `json:"reject"`
	} `json:"expect"`
	HealthChecks []struct {
		api.HealthCheck
		Listen *bool `json:"listen"`
	} `json:"healthChecks"`
	Metrics *caseMetrics `json:"metrics"`
}

// caseMetrics are numbers that only an agent has.
type caseMetrics struct {
	NoLocalEndpoints struct {
		Internal int `json:"internal"`
		External int `json:"external"`
	} `json:"no_local_endpoints"`
}

// acceptanceCase is the part of a case that a dry run or an agent can show. Packets, flows and
// writes need a whole node.
type acceptanceCase struct {
	Name   string        `json:"name"`
	Node   kubetest.Node `json:"node"`
	Config struct {
		NodePortAddresses []string `json:"nodePortAddresses"`
		ClusterCIDRs      []string `json:"clusterCIDRs"`
		ServiceCIDRs      []string `json:"serviceCIDRs"`
		MasqueradeAll     bool     `json:"masqueradeAll"`
	} `json:"config"`
	objects
	check
	Synced map[string]bool `json:"synced"`
	Steps  []struct {
		Name   string  `json:"name"`
		Apply  objects `json:"apply"`
		Delete struct {
			Services       []string `json:"services"`
			EndpointSlices []string `json:"endpointSlices"`
		} `json:"delete"`
		Node         *kubetest.Node `json:"node"`
		ProxyHealthy *bool          `json:"proxyHealthy"`
		check
	} `json:"steps"`
}

// loadPlanCases reads the cases.
func loadPlanCases(t *testing.T) []*acceptanceCase {
	t.Helper()
	var file struct {
		Cases []*acceptanceCase `json:"cases"`
	}
	if err := json.Unmarshal(kubetest.Read(t, "service-cases.json"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 99 {
		t.Errorf("only %d cases", len(file.Cases))
	}
	return file.Cases
}

// TestPlanAcceptance feeds every acceptance case, and every state that its steps lead to, through
// the command.
func TestPlanAcceptance(t *testing.T) {
	for _, c := range loadPlanCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			world := worldOf(c)
			if slices.Contains(slices.Collect(maps.Values(c.Synced)), false) {
				world.checkIncomplete(t)
				return
			}
			world.check(t, &c.check, true)
			for _, step := range c.Steps {
				world.apply(step.Apply)
				world.remove(step.Delete.Services, step.Delete.EndpointSlices)
				if step.Node != nil {
					world.node = *step.Node
				}
				t.Run(step.Name, func(t *testing.T) { world.check(t, &step.check, step.ProxyHealthy == nil || *step.ProxyHealthy) })
			}
		})
	}
}

// world is the state of a cluster that steps change.
type world struct {
	flags            []string
	node             kubetest.Node
	services, slices map[string]object
}

func worldOf(c *acceptanceCase) *world {
	w := &world{node: c.Node, services: map[string]object{}, slices: map[string]object{}}
	addresses := strings.Join(c.Config.NodePortAddresses, ",")
	if addresses == "" {
		addresses = "all"
	}
	w.flags = []string{"--node-port-addresses", addresses}
	if len(c.Config.ClusterCIDRs) > 0 {
		w.flags = append(w.flags, "--cluster-cidr", strings.Join(c.Config.ClusterCIDRs, ","))
	}
	if len(c.Config.ServiceCIDRs) > 0 {
		w.flags = append(w.flags, "--service-cidr", strings.Join(c.Config.ServiceCIDRs, ","))
	}
	if c.Config.MasqueradeAll {
		w.flags = append(w.flags, "--masquerade-all")
	}
	w.apply(c.objects)
	return w
}

func (w *world) apply(o objects) {
	for _, s := range o.Services {
		s["apiVersion"], s["kind"] = "v1", "Service"
		w.services[s.key()] = s
	}
	for _, s := range o.EndpointSlices {
		s["apiVersion"], s["kind"] = "discovery.k8s.io/v1", "EndpointSlice"
		w.slices[s.key()] = s
	}
}

func (w *world) remove(services, slices []string) {
	for _, key := range services {
		delete(w.services, key)
	}
	for _, key := range slices {
		delete(w.slices, key)
	}
}

// document is the world as `kubectl get -o json` prints it.
func (w *world) document(t *testing.T) string {
	t.Helper()
	var addresses []object
	for _, a := range w.node.Addresses {
		addresses = append(addresses, object{"type": "InternalIP", "address": a})
	}
	labels := map[string]string{}
	for k, v := range w.node.Labels {
		labels[k] = v
	}
	if w.node.Zone != "" {
		labels["topology.kubernetes.io/zone"] = w.node.Zone
	}
	items := []object{{
		"apiVersion": "v1", "kind": "Node", "metadata": object{"name": w.node.Name, "labels": labels}, "status": object{"addresses": addresses},
	}}
	for _, set := range []map[string]object{w.services, w.slices} {
		for _, o := range set { // in any order: the plan must not depend on it
			items = append(items, o)
		}
	}
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkIncomplete cuts the input short. The plan must handle this like an agent without a complete
// list: it reports no frontend.
func (w *world) checkIncomplete(t *testing.T) {
	t.Helper()
	whole := w.document(t)
	args := append([]string{"plan", "-f", "-", "--node-name", w.node.Name, "-o", "json"}, w.flags...)
	if r := troupe(whole[:len(whole)-1], args...); r.code != exitFailed || r.out != "" || r.errs == "" {
		t.Errorf("exit code %d, want %d; output %q, want none; errors %q", r.code, exitFailed, r.out, r.errs)
	}
}

func (w *world) check(t *testing.T, want *check, healthy bool) {
	t.Helper()
	args := append([]string{"plan", "-f", "-", "--node-name", w.node.Name, "-o", "json"}, w.flags...)
	r := troupe(w.document(t), args...)
	if r.code != exitOK {
		t.Fatalf("exit code %d: %s", r.code, r.errs)
	}
	report := decodeReport(t, r.out)
	expect, got := []api.Frontend{}, []api.Frontend{}
	for _, f := range want.Expect {
		expect = append(expect, normal(f.Frontend))
	}
	for _, f := range report.Frontends {
		f.Service, f.Port = "", "" // expectations do not hold them
		got = append(got, normal(f))
	}
	byKey := func(a, b api.Frontend) int { return strings.Compare(a.Frontend+a.From, b.Frontend+b.From) }
	slices.SortFunc(expect, byKey)
	slices.SortFunc(got, byKey)
	if diff := cmp.Diff(expect, got); diff != "" {
		t.Errorf("frontends (-want +got):\n%s", diff)
	}
	for _, h := range want.HealthChecks {
		w.checkHealth(t, report, h.HealthCheck, h.Listen, healthy)
	}
}

// checkHealth compares one health check; a plan speaks for a healthy agent.
func (w *world) checkHealth(t *testing.T, report *plan.Report, want api.HealthCheck, listen *bool, healthy bool) {
	t.Helper()
	var found []api.HealthCheck
	for _, h := range report.HealthChecks {
		if h.Service == want.Service {
			found = append(found, h)
		}
	}
	if listen != nil && !*listen {
		if len(found) > 0 {
			t.Errorf("%s has a health check: %+v", want.Service, found)
		}
		return
	}
	if !healthy {
		want.Status = 200
		if want.LocalEndpoints == 0 {
			want.Status = 503
		}
	}
	if !slices.Contains(found, want) {
		t.Errorf("health checks of %s: %+v, want %+v", want.Service, found, want)
	}
}

// normal orders what is a set and makes absent lists empty.
func normal(f api.Frontend) api.Frontend {
	for _, list := range []*[]string{&f.Endpoints, &f.MasqueradeFrom, &f.AllowSources} {
		*list = append([]string{}, *list...)
		slices.Sort(*list)
	}
	return f
}

// decodeReport reads the output of plan strictly.
func decodeReport(t *testing.T, text string) *plan.Report {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	report := &plan.Report{}
	if err := d.Decode(report); err != nil {
		t.Fatalf("output of plan: %v\n%s", err, text)
	}
	return report
}
