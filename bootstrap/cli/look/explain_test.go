package look

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// drawn is a table in a file.
func drawn(t *testing.T, table func(c *cli.Columns)) string {
	t.Helper()
	var out strings.Builder
	c := cli.NewColumns(&out, cli.Screen{})
	table(c)
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// explainedRow is a row of VPP with one backend.
func explainedRow(vip, backend string, weight uint32) api.Row {
	return api.Row{Renderer: "nat44", VIP: vip, Flags: []string{"out2in-only"}, Locals: []api.Local{{Address: backend, Weight: weight}}}
}

func TestExplain(t *testing.T) {
	s := &api.ServiceDetail{
		Service: api.Service{Key: "shop/web", State: api.ServiceFailed, Error: "VPP said no"},
		Wanted: []api.Frontend{
			{Frontend: "a", Action: "forward", Endpoints: []string{"1"}},
			{Frontend: "b", Action: "forward"},
			{Frontend: "c", Action: "forward"},
			{Frontend: "d", Action: "reject"},
			{Frontend: "e", Action: "drop"},
			{Frontend: "f", Action: "forward", AllowSources: []string{"10.0.0.0/8"}},
			{Frontend: "g", Action: "forward"},
		},
		Rendered: []api.Row{explainedRow("a", "1", 7), explainedRow("b", "1", 7), explainedRow("c", "1", 7), explainedRow("g", "1", 7)},
		InVPP:    []api.Row{explainedRow("a", "1", 7), explainedRow("c", "1", 1), explainedRow("f", "1", 7)},
		Approximations: []api.FrontendApproximation{
			{Frontend: "c", Wanted: "300 backends", Rendered: "253", Why: "a row has 8 bits"},
		},
		Conflicts: []api.Conflict{{Frontend: "f", Owner: "shop/old"}, {Frontend: "g", Owner: "an operator"}},
		Problems:  []api.Problem{{Source: "x.yaml", Kind: "Service", Object: "shop/web", Field: "spec.ports[1].port", Message: "is no port"}},
	}
	got := explain(s)
	want := &explanation{
		Draining: []api.DrainingEndpoint{},
		Service:  "shop/web", State: api.ServiceFailed,
		Because: []string{"VPP said no", "x.yaml: Service shop/web: spec.ports[1].port: is no port"},
		Frontends: []explainedFrontend{
			{Frontend: "a", Action: "forward", Endpoints: []string{"1"}, InVPP: "as wanted", Why: []string{}},
			{Frontend: "b", Action: "forward", InVPP: "missing", Why: []string{}},
			{Frontend: "c", Action: "forward", InVPP: "other than wanted", Why: []string{"wanted 300 backends, rendered 253: a row has 8 bits"}},
			{Frontend: "d", Action: "reject", InVPP: "no row", Why: []string{"no endpoint is ready: VPP rejects clients"}},
			{Frontend: "e", Action: "drop", InVPP: "no row", Why: []string{"no endpoint on this node: VPP drops packets"}},
			{Frontend: "f", Action: "forward", InVPP: "left over", Why: []string{"shop/old has this address", "only from 10.0.0.0/8"}},
			{Frontend: "g", Action: "forward", InVPP: "owned by another", Why: []string{"an operator has this address"}},
		},
		InVPP: s.InVPP, Unused: []api.EndpointUse{},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(explanation{})); diff != "" {
		t.Error(diff)
	}
	if got := explain(&api.ServiceDetail{NotServed: "headless"}); !cmp.Equal(got.Because, []string{"headless"}) || got.Frontends == nil {
		t.Errorf("%+v", got)
	}
}

// TestReasonForAllIsSaidOnce: a reason for all frontends is not repeated in each row.
func TestReasonForAllIsSaidOnce(t *testing.T) {
	slow := func(frontend string) api.FrontendApproximation {
		return api.FrontendApproximation{Frontend: frontend, Wanted: "refusal", Rendered: "silence", Why: "NAT44 sends none"}
	}
	got := explain(&api.ServiceDetail{
		Wanted:         []api.Frontend{{Frontend: "a", Action: "reject"}, {Frontend: "b", Action: "drop"}},
		Approximations: []api.FrontendApproximation{slow("a"), slow("a"), slow("b")},
	})
	got.Frontends = append(got.Frontends, explainedFrontend{Frontend: "c", Why: got.Frontends[0].Why})
	want := `
Why
a, c             no endpoint is ready: VPP rejects clients
every frontend   wanted refusal, rendered silence: NAT44 sends none
b                no endpoint on this node: VPP drops packets
`
	if text := drawn(t, got.reasons); text != want {
		t.Errorf("%s", text)
	}
}

// TestExplainUnused: a reason is said once, however many endpoints it concerns.
func TestExplainUnused(t *testing.T) {
	s := &api.ServiceDetail{}
	for i := range 5000 {
		s.Uses = append(s.Uses, api.EndpointUse{Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250), Why: "not ready"})
	}
	s.Uses = append(s.Uses, api.EndpointUse{Address: "10.2.0.1", Pod: "a/b", Why: "hinted"}, api.EndpointUse{Address: "10.2.0.2"})
	want := "ENDPOINTS WHY 10.2.0.1 a/b hinted 10.1.0.0, 10.1.0.1, 10.1.0.2 and 4997 more not ready"
	if got := strings.Join(strings.Fields(drawn(t, explain(s).unused)), " "); !strings.HasSuffix(got, want) {
		t.Error(got)
	}
}

// TestExplainLostEndpoints: an endpoint that connections do not reach has a section of its own.
func TestExplainLostEndpoints(t *testing.T) {
	e := explain(&api.ServiceDetail{
		Service: api.Service{Key: "shop/web", State: api.ServiceInSync, Error: "1 of 2 endpoints"},
		Uses:    []api.EndpointUse{{Address: "10.1.1.4", Pod: "shop/b", Frontends: 1, Forwards: 1, Fault: "VPP has no interface"}, {Address: "10.1.1.3"}},
	})
	got := drawn(t, func(c *cli.Columns) { explanationTable(c, e) })
	for _, want := range []string{"Because:   1 of 2 endpoints\n", "Endpoints that connections do not reach\n10.1.1.4 shop/b   VPP has no interface\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	packet := drawn(t, func(c *cli.Columns) {
		packetTable(c, &explainedPacket{Packet: &api.Packet{Backends: []api.PacketBackend{{Address: "10.1.1.4:80", Share: 1, ShareInVPP: 1, Fault: "VPP has no interface"}}}})
	})
	if want := "10.1.1.4:80   100.0%   100.0%         kept     VPP has no interface\n"; !strings.Contains(packet, want) {
		t.Errorf("no %q in\n%s", want, packet)
	}
}
