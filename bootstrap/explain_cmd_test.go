package bootstrap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/show"
)

// explainedRow is a row of VPP with one backend.
func explainedRow(vip, backend string, weight uint32) show.Row {
	return show.Row{Renderer: "nat44", VIP: vip, Flags: []string{"out2in-only"}, Locals: []show.Local{{Address: backend, Weight: weight}}}
}

func TestExplain(t *testing.T) {
	s := &api.ServiceDetail{
		Service: api.Service{Key: "shop/web", State: api.ServiceFailed, Error: "VPP said no"},
		Wanted: []show.Frontend{
			{Frontend: "a", Action: "forward", Endpoints: []string{"1"}},
			{Frontend: "b", Action: "forward"},
			{Frontend: "c", Action: "forward"},
			{Frontend: "d", Action: "reject"},
			{Frontend: "e", Action: "drop"},
			{Frontend: "f", Action: "forward", AllowSources: []string{"10.0.0.0/8"}},
			{Frontend: "g", Action: "forward"},
		},
		Rendered: []show.Row{explainedRow("a", "1", 7), explainedRow("b", "1", 7), explainedRow("c", "1", 7), explainedRow("g", "1", 7)},
		InVPP:    []show.Row{explainedRow("a", "1", 7), explainedRow("c", "1", 1), explainedRow("f", "1", 7)},
		Approximations: []show.Approximation{
			{Frontend: "c", Wanted: "300 backends", Rendered: "253", Why: "a row has 8 bits"},
		},
		Conflicts: []api.Conflict{{Frontend: "f", Owner: "shop/old"}, {Frontend: "g", Owner: "an operator"}},
		Problems:  []show.Problem{{Source: "x.yaml", Kind: "Service", Object: "shop/web", Field: "spec.ports[1].port", Message: "is no port"}},
	}
	got := explain(s)
	want := &explanation{
		Service: "shop/web", State: api.ServiceFailed,
		Because: []string{"VPP said no", "x.yaml: Service shop/web: spec.ports[1].port: is no port"},
		Frontends: []explainedFrontend{
			{Frontend: "a", Action: "forward", Endpoints: []string{"1"}, InVPP: "as wanted"},
			{Frontend: "b", Action: "forward", InVPP: "missing"},
			{Frontend: "c", Action: "forward", InVPP: "other than wanted", Why: "wanted 300 backends, rendered 253: a row has 8 bits"},
			{Frontend: "d", Action: "reject", InVPP: "no row", Why: "no endpoint is ready: VPP rejects clients"},
			{Frontend: "e", Action: "drop", InVPP: "no row", Why: "no endpoint on this node: VPP drops packets"},
			{Frontend: "f", Action: "forward", InVPP: "left over", Why: "shop/old has this address; only from 10.0.0.0/8"},
			{Frontend: "g", Action: "forward", InVPP: "owned by another", Why: "an operator has this address"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := explain(&api.ServiceDetail{NotServed: "headless"}); !cmp.Equal(got.Because, []string{"headless"}) || got.Frontends == nil {
		t.Errorf("%+v", got)
	}
}

func TestExplainCommand(t *testing.T) {
	a := apitest.Start(t, apitest.New(10), nil)
	for args, tt := range map[string]struct {
		code      int
		out, errs string
	}{
		"explain shop/service-000": {0, `
Service:   shop/service-000
State:     in-sync
Actor:     agent/world/services/shop~service-000, running, incarnation 1, 0 messages pending

Frontends
FRONTEND           KIND        FROM   ACTION    ENDPOINTS       IN VPP      WHY
10.96.0.1:80/TCP   clusterIP   any    forward   10.1.1.3:8080   as wanted   -
`, ""},
		"explain shop/service-009 -o yaml": {0, "because:\n- VPP refused the row\n", ""},
		"explain shop/none":                {1, "", "troupe: service shop/none: not found\n"},
		"explain web":                      {2, "", `troupe: "web" is not the name of a service: expected NAMESPACE/NAME` + "\n"},
	} {
		r := lookAt(a, args)
		if r.code != tt.code || r.errs != tt.errs || !strings.Contains("\n"+r.out, tt.out) {
			t.Errorf("troupe %s: exit code %d\n%s%s\nwant\n%s", args, r.code, r.out, r.errs, tt.out)
		}
	}
}
