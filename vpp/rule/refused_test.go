package rule

import (
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// TestRefusalIsReportedAsItIs: the approximation says what a client sees instead of what Kubernetes
// asks for.
func TestRefusalIsReportedAsItIs(t *testing.T) {
	const cluster, external, nodePort = messages.Scope_SCOPE_CLUSTER, messages.Scope_SCOPE_EXTERNAL, messages.Scope_SCOPE_NODEPORT
	const reject, drop, forward = messages.Action_ACTION_REJECT, messages.Action_ACTION_DROP, messages.Action_ACTION_FORWARD
	for name, tc := range map[string]struct {
		scope  messages.Scope
		action messages.Action
		// other is the action of another port of the address.
		other messages.Action
		// routed is the report with unreachable routes, plain without them.
		routed, plain string
	}{
		"reject of a cluster IP":                  {cluster, reject, forward, "", NoRow},
		"reject of an external address":           {external, reject, reject, "", NoRow},
		"reject of one of which a port is served": {external, reject, forward, NoRow, NoRow},
		"reject of an external one with a drop":   {external, reject, drop, NoRow, NoRow},
		"reject of a node port":                   {nodePort, reject, forward, NoRow, NoRow},
		"drop of a cluster IP":                    {cluster, drop, forward, "", NoRow},
		"drop of a cluster IP with a reject":      {cluster, drop, reject, "reject", NoRow},
		"drop of an external address":             {external, drop, forward, NoRow, NoRow},
		"drop of an external one with a reject":   {external, drop, reject, NoRow, NoRow},
		"drop of a node port":                     {nodePort, drop, forward, NoRow, NoRow},
		"forward is not affected by any route":    {cluster, forward, forward, "", ""},
		"forward beside a reject is neither":      {cluster, forward, reject, "", ""},
		"forward to an external address, either":  {external, forward, forward, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rule := func(port uint32, action messages.Action) *messages.Frontend {
				return &messages.Frontend{Address: "10.96.0.10", Port: port, Protocol: messages.Protocol_TCP, Scope: tc.scope, Action: action}
			}
			view := &messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{rule(80, tc.action), rule(81, tc.other)}}
			for _, routed := range []bool{true, false} {
				want := tc.plain
				if routed {
					want = tc.routed
				}
				p := New(view, Config{Name: "X", Unreachable: routed, Family: func(bool) (string, bool) { return "", true }})
				p.Each(func(Key, *messages.Frontend) {})
				got := ""
				for _, a := range p.Approximations {
					if a.GetFrontend() == "10.96.0.10:80/TCP" {
						got = a.GetRendered()
					}
				}
				if got != want {
					t.Errorf("rendered %q, want %q", got, want)
				}
			}
		})
	}
}
