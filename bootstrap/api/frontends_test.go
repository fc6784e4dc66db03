package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

// TestNothingIsNull: a list that is missing in a message is an array in the JSON.
func TestNothingIsNull(t *testing.T) {
	view := &messages.ServiceView{Key: "a/b", Frontends: []*messages.Frontend{{}}, HealthChecks: []*messages.HealthCheck{{}}}
	for _, value := range []any{
		Frontends(view), Frontends(nil), HealthChecks(view), HealthChecks(nil), Rows("a/b", []*messages.RowState{{}}), Rows("a/b", nil),
		Approximations([]*messages.Approximation{{}}), Approximations(nil), Problems([]*messages.ObjectError{{}}), Problems(nil),
	} {
		text, err := json.Marshal(value)
		if err != nil || strings.Contains(string(text), "null") {
			t.Errorf("%T: %s, %v", value, text, err)
		}
	}
}

func TestFrontends(t *testing.T) {
	view := &messages.ServiceView{Key: "shop/web", Frontends: []*messages.Frontend{{
		Address: "fd00::1", Port: 80, Protocol: messages.Protocol_UDP, PortName: "http", Scope: messages.Scope_SCOPE_EXTERNAL,
		Kind: messages.FrontendKind_KIND_LOAD_BALANCER_IP, From: messages.ClientClass_FROM_REMOTE, Action: messages.Action_ACTION_FORWARD,
		Backends: []*messages.Backend{{Address: "fd00::2", Port: 8080}}, AffinitySeconds: 30, MasqueradeFrom: []string{"node"},
		AllowSources: []string{"fd00::/64"},
	}}}
	want := []Frontend{{
		Frontend: "[fd00::1]:80/UDP", Service: "shop/web", Port: "http", Scope: "external", Kind: "loadBalancerIP", From: "remote",
		Action: "forward", Endpoints: []string{"[fd00::2]:8080"}, AffinitySeconds: 30, MasqueradeFrom: []string{"node"},
		AllowSources: []string{"fd00::/64"},
	}}
	if diff := cmp.Diff(want, Frontends(view)); diff != "" {
		t.Errorf("frontends (-want +got):\n%s", diff)
	}
}

// TestHealthChecks: two families with equal health checks are one line; otherwise they are two.
func TestHealthChecks(t *testing.T) {
	view := func(four, six uint32) *messages.ServiceView {
		return &messages.ServiceView{Key: "shop/web", HealthChecks: []*messages.HealthCheck{{Port: 31000, LocalEndpoints: four}, {Port: 31000, LocalEndpoints: six}}}
	}
	if got := HealthChecks(view(1, 1)); len(got) != 1 || got[0].Status != 200 {
		t.Errorf("equal families: %+v", got)
	}
	if got := HealthChecks(view(1, 0)); len(got) != 2 || got[1].Status != 503 {
		t.Errorf("different families: %+v", got)
	}
}
