package plan

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

func TestUnknownNode(t *testing.T) {
	objects := &normalize.Objects{Nodes: []*messages.Node{{Name: "b"}, {Name: "a"}}}
	_, _, err := Build(objects, Options{Node: "c"})
	if !errors.Is(err, ErrUnknownNode) || err.Error() != `unknown node "c": the input holds a, b` {
		t.Errorf("error %v", err)
	}
}

// TestEmptyCluster: lists are arrays, not null.
func TestEmptyCluster(t *testing.T) {
	report, problems, err := Build(&normalize.Objects{Nodes: []*messages.Node{{Name: "a"}}}, Options{Node: "a"})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if report.Frontends == nil || report.HealthChecks == nil || report.Rows == nil || report.Approximations == nil {
		t.Errorf("a list is nil: %+v", report)
	}
}

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.json", "c.yml", ".x.yaml", "notes.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "d.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := expand(dir)
	want := []string{filepath.Join(dir, "a.json"), filepath.Join(dir, "b.yaml"), filepath.Join(dir, "c.yml")}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, files (-want +got):\n%s", err, diff)
	}
}

// TestStdinOnce: standard input stands among files, under its name in problems.
func TestStdinOnce(t *testing.T) {
	_, problems, err := Read([]string{Stdin}, strings.NewReader("apiVersion: v1\nkind: Node\nmetadata: {}\n"))
	if err != nil || len(problems) == 0 || problems[0].GetSource() != "stdin" {
		t.Errorf("%v %v", problems, err)
	}
}

// TestGuardedPlan: a frontend that access lists make exact has no approximation; other frontends
// have one.
func TestGuardedPlan(t *testing.T) {
	service := func(name, ip string, protocol messages.Protocol) *messages.Service {
		return &messages.Service{
			Namespace: "shop", Name: name, Uid: name, Created: 1, Type: messages.ServiceType_LOAD_BALANCER,
			ClusterIps: []string{"10.96.0." + ip}, IpFamilies: []messages.IPFamily{messages.IPFamily_IPV4},
			LoadBalancer: []*messages.LoadBalancerIngress{{Ip: "203.0.113." + ip}},
			Ports:        []*messages.ServicePort{{Protocol: protocol, Port: 53}},
		}
	}
	slice := func(name string, protocol messages.Protocol) *messages.EndpointSlice {
		return &messages.EndpointSlice{
			Namespace: "shop", Name: name, Service: name, Family: messages.IPFamily_IPV4,
			Ports:     []*messages.EndpointPort{{Protocol: protocol, Port: 53}},
			Endpoints: []*messages.Endpoint{{Address: "10.1.2.9", Ready: true, Serving: true, Node: "b"}},
		}
	}
	ranged, away, datagrams := service("ranged", "1", messages.Protocol_TCP), service("away", "2", messages.Protocol_TCP), service("datagrams", "3", messages.Protocol_UDP)
	ranged.SourceRanges, datagrams.SourceRanges = []string{"192.0.2.0/24"}, []string{"192.0.2.0/24"}
	away.ExternalPolicy = messages.TrafficPolicy_POLICY_LOCAL
	report, problems, err := Build(&normalize.Objects{
		Nodes:    []*messages.Node{{Name: "a", PodCidrs: []string{"10.1.1.0/24"}}},
		Services: []*messages.Service{ranged, away, datagrams},
		Slices:   []*messages.EndpointSlice{slice("ranged", messages.Protocol_TCP), slice("away", messages.Protocol_TCP), slice("datagrams", messages.Protocol_UDP)},
	}, Options{Node: "a"})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if len(report.Rows) != 6 {
		t.Errorf("%d rows, want 6: %v", len(report.Rows), report.Rows)
	}
	guards := 0
	for _, b := range report.Beside {
		if b.Object == "access list" && b.Service == "shop/ranged" && strings.HasPrefix(b.Text, "drop 203.0.113.1:53/TCP from ") {
			guards++
		}
	}
	if guards == 0 {
		t.Errorf("no rules for source ranges: %v", report.Beside)
	}
	said := map[string]string{}
	for _, a := range report.Approximations {
		said[a.Frontend] = a.Rendered
	}
	if len(report.Approximations) != 2 || !strings.Contains(said["203.0.113.3:53/UDP"], "fragments") ||
		!strings.Contains(said["203.0.113.2:53/TCP"], "enters from outside this node") {
		t.Errorf("approximations %+v", report.Approximations)
	}
}
