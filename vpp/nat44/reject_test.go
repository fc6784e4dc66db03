package nat44

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

// TestUnreachableRoutesAreAddedOnlyWhereNothingIs is about networks of cluster IPs that VPP should refuse.
func TestUnreachableRoutesAreAddedOnlyWhereNothingIs(t *testing.T) {
	prefix := netip.MustParsePrefix("10.96.0.0/16")
	for name, tc := range map[string]struct {
		have map[netip.Prefix]bool
		want int
	}{
		"no route of its own":      {map[netip.Prefix]bool{}, 1},
		"unreachable already":      {map[netip.Prefix]bool{prefix: true}, 0},
		"somebody routes it":       {map[netip.Prefix]bool{prefix: false}, 0},
		"another network is there": {map[netip.Prefix]bool{netip.MustParsePrefix("10.97.0.0/16"): true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			have := NewState()
			have.Enabled, have.Forwarding, have.Timeouts, have.Reject = true, true, DefaultTimeouts(), tc.have
			ops := DiffGlobals(have, &Want{Globals: Globals{Reject: []netip.Prefix{prefix}}})
			if len(ops) != tc.want {
				t.Fatalf("operations %v, want %d", ops, tc.want)
			}
			for _, op := range ops {
				have.Record(op)
			}
			if again := DiffGlobals(have, &Want{Globals: Globals{Reject: []netip.Prefix{prefix}}}); len(again) != 0 {
				t.Errorf("a second round asks for %v", again)
			}
		})
	}
}

// TestEnableKeepsRoutes: the plugin forgets its own settings when it is enabled, routes are not among them.
func TestEnableKeepsRoutes(t *testing.T) {
	state := NewState()
	state.Reject[netip.MustParsePrefix("10.96.0.0/16")] = true
	state.Record(Op{Verb: Enable})
	if len(state.Reject) != 1 {
		t.Error("the unreachable route is forgotten")
	}
}

// TestRefusalIsReportedAsItIs says what a client sees instead of what Kubernetes asks for.
func TestRefusalIsReportedAsItIs(t *testing.T) {
	inside, outside := "10.96.0.10", "203.0.113.10"
	for name, tc := range map[string]struct {
		address  string
		action   messages.Action
		rendered string
	}{
		"reject inside the service network":  {inside, messages.Action_ACTION_REJECT, "reject: host unreachable"},
		"reject elsewhere":                   {outside, messages.Action_ACTION_REJECT, noRow},
		"drop inside the service network":    {inside, messages.Action_ACTION_DROP, "reject: host unreachable"},
		"drop elsewhere":                     {outside, messages.Action_ACTION_DROP, noRow},
		"forward is not affected by a route": {inside, messages.Action_ACTION_FORWARD, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &messages.Frontend{Address: tc.address, Port: 80, Protocol: messages.Protocol_TCP, Action: tc.action}
			if tc.action == messages.Action_ACTION_FORWARD {
				f.Backends = []*messages.Backend{{Address: "10.1.1.2", Port: 8080, Local: true}}
			}
			cfg := testConfig
			cfg.Reject = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
			plan := Plan(&messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{f}}, cfg)
			var got string
			for _, a := range plan.Approximations {
				got = a.GetRendered()
			}
			if diff := cmp.Diff(tc.rendered, got); diff != "" {
				t.Errorf("rendered (-want +got):\n%s", diff)
			}
		})
	}
}
