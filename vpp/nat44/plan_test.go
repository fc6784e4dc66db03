package nat44

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

var testConfig = Config{Node: "n1", TwiceNAT: netip.MustParseAddr("10.1.1.254"), Pads: true}

// as changes a frontend.
func as(f *messages.Frontend, changes ...func(*messages.Frontend)) *messages.Frontend {
	for _, change := range changes {
		change(f)
	}
	return f
}

func external(f *messages.Frontend) {
	f.Scope, f.Kind = messages.Scope_SCOPE_EXTERNAL, messages.FrontendKind_KIND_LOAD_BALANCER_IP
}

func nodePort(f *messages.Frontend) {
	f.Scope, f.Kind = messages.Scope_SCOPE_NODEPORT, messages.FrontendKind_KIND_NODE_PORT
}

func masqueraded(from ...string) func(*messages.Frontend) {
	return func(f *messages.Frontend) { f.MasqueradeFrom = from }
}

func from(class messages.ClientClass) func(*messages.Frontend) {
	return func(f *messages.Frontend) { f.From = class }
}

func action(a messages.Action) func(*messages.Frontend) {
	return func(f *messages.Frontend) { f.Action, f.Backends = a, nil }
}

const (
	tcp    = messages.Protocol_TCP
	local  = messages.ClientClass_FROM_LOCAL
	remote = messages.ClientClass_FROM_REMOTE
)

// planText renders a plan: rows, then "~" approximations, "!" unrendered parts, keys of cluster IPs
// and node ports that are refused.
func planText(p *ServicePlan) string {
	var b strings.Builder
	for _, row := range p.Rows {
		fmt.Fprintf(&b, "%s %s", row.Key, row.Flags)
		if row.Affinity > 0 {
			fmt.Fprintf(&b, " affinity=%d", row.Affinity)
		}
		for _, l := range row.Locals {
			fmt.Fprintf(&b, " %s*%d", l, l.Weight)
		}
		b.WriteString("\n")
	}
	for _, row := range p.Refused {
		fmt.Fprintf(&b, "refuse %s\n", row.Key)
	}
	for _, a := range p.Approximations {
		fmt.Fprintf(&b, "~ %s: %s -> %s\n", a.GetFrontend(), a.GetWanted(), a.GetRendered())
	}
	for _, e := range p.Unrendered {
		fmt.Fprintf(&b, "! %s: %s\n", e.GetField(), e.GetMessage())
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	cluster := func(backends ...string) *messages.Frontend { return serving("10.96.0.1", 80, tcp, backends...) }
	for _, c := range []struct {
		name      string
		frontends []*messages.Frontend
		want      string
	}{
		{
			"cluster IP",
			[]*messages.Frontend{as(cluster("10.1.1.3:8080*", "10.1.2.3:8080"), masqueraded("node", "remote"))},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.1.3:8080*7 10.1.2.3:8080*7\n" +
				"~ 10.96.0.1:80/TCP: the source of clients outside the cluster replaced -> source kept: the answer of an endpoint on another node may go past this node\n",
		},
		{
			"cluster IP, all endpoints here",
			[]*messages.Frontend{as(cluster("10.1.1.3:8080*"), masqueraded("node", "remote"))},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.1.3:8080*7\n" +
				"~ 10.96.0.1:80/TCP: the source of clients outside the cluster replaced -> source kept: the endpoints are on this node, and so their answers come back to it\n",
		},
		{
			"cluster IP, no client is masqueraded",
			[]*messages.Frontend{cluster("10.1.1.3:8080*", "10.1.2.3:8080")},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.1.3:8080*7 10.1.2.3:8080*7\n",
		},
		{
			"order and duplicates of backends",
			[]*messages.Frontend{cluster("10.1.1.10:80", "10.1.1.2:81", "10.1.1.2:80", "10.1.1.10:80")},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.1.2:80*7 10.1.1.2:81*7 10.1.1.10:80*7\n",
		},
		{
			"cluster IP, masqueradeAll",
			[]*messages.Frontend{as(cluster("10.1.1.3:8080*"), masqueraded("pod", "node", "remote"))},
			"10.96.0.1:80/TCP out2in-only,twice-nat 10.1.1.3:8080*7\n",
		},
		{
			"external, policy Cluster, remote backend",
			[]*messages.Frontend{
				as(cluster("10.1.1.3:8080*", "10.1.2.3:8080"), external, masqueraded("pod", "node", "remote")),
			},
			"10.96.0.1:80/TCP out2in-only,twice-nat 10.1.1.3:8080*7 10.1.2.3:8080*7\n",
		},
		{
			"external, policy Cluster, all backends here",
			[]*messages.Frontend{
				as(cluster("10.1.1.3:8080*"), nodePort, masqueraded("pod", "node", "remote")),
			},
			"10.96.0.1:80/TCP out2in-only,twice-nat 10.1.1.3:8080*7\n",
		},
		{
			"policy Local, other endpoints for clients here",
			[]*messages.Frontend{
				as(cluster("10.1.1.3:80*", "10.1.2.3:80"), nodePort, from(local), masqueraded("node")),
				as(cluster("10.1.1.3:80*"), nodePort, from(remote)),
			},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.1.3:80*7\n" +
				"~ 10.96.0.1:80/TCP: from local: 2 endpoints -> as for all clients: 1 endpoints\n",
		},
		{
			"policy Local, same endpoints for all",
			[]*messages.Frontend{
				as(cluster("10.1.1.3:80*"), nodePort, from(local), masqueraded("node")),
				as(cluster("10.1.1.3:80*"), nodePort, from(remote)),
			},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.1.3:80*7\n",
		},
		{
			"policy Local, no endpoint here",
			[]*messages.Frontend{
				as(cluster("10.1.2.3:80"), external, from(local), masqueraded("node")),
				as(cluster(), external, from(remote), action(messages.Action_ACTION_DROP)),
			},
			"refuse 10.96.0.1:80/TCP\n" +
				"~ 10.96.0.1:80/TCP: drop -> no row: the packet follows the routes of VPP\n" +
				"~ 10.96.0.1:80/TCP: from local: 1 endpoints -> as for all clients: drop\n",
		},
		{
			"a rule for clients here alone",
			[]*messages.Frontend{as(cluster("10.1.2.3:80"), from(local))},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.2.3:80*7\n" +
				"~ 10.96.0.1:80/TCP: from local only: 1 endpoints -> the same for all clients\n",
		},
		{
			"no endpoints",
			[]*messages.Frontend{as(cluster(), action(messages.Action_ACTION_REJECT))},
			"refuse 10.96.0.1:80/TCP\n~ 10.96.0.1:80/TCP: reject: connection refused -> no row: the packet follows the routes of VPP\n",
		},
		{
			"source ranges",
			[]*messages.Frontend{as(cluster("10.1.1.3:80*"), external, func(f *messages.Frontend) {
				f.AllowSources = []string{"10.0.0.0/8", "192.0.2.0/24"}
			})},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.1.3:80*7\n",
		},
		{
			"affinity",
			[]*messages.Frontend{as(cluster("10.1.1.3:80*"), func(f *messages.Frontend) { f.AffinitySeconds = 10800 })},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat affinity=10800 10.1.1.3:80*7\n" +
				"~ 10.96.0.1:80/TCP: a client stays with its endpoint for 10800 s, for all frontends of the port -> a client stays with its endpoint per frontend, until any endpoint goes\n",
		},
		{
			"maglev",
			[]*messages.Frontend{as(cluster("10.1.1.3:80*"), func(f *messages.Frontend) { f.Maglev = true })},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.1.3:80*7\n" +
				"~ 10.96.0.1:80/TCP: connections spread by maglev -> spread by the weights of endpoints\n",
		},
		{
			"protocols",
			[]*messages.Frontend{
				serving("10.96.0.1", 53, messages.Protocol_UDP, "10.1.1.3:53"),
				serving("10.96.0.1", 54, messages.Protocol_SCTP, "10.1.1.3:53"),
				serving("10.96.0.1", 55, messages.Protocol_PROTOCOL_UNSPECIFIED, "10.1.1.3:53"),
			},
			"10.96.0.1:53/UDP out2in-only,self-twice-nat 10.1.1.3:53*7\n" +
				"! ports[http].protocol: frontend 10.96.0.1:54/SCTP is not served: NAT44 translates TCP and UDP only\n" +
				"! ports[http].protocol: frontend 10.96.0.1:55/0 is not served: NAT44 translates TCP and UDP only\n",
		},
		{
			"IPv6",
			[]*messages.Frontend{serving("fd00::1", 80, tcp, "[fd00::2]:80")},
			"! ports[http].address: frontend [fd00::1]:80/TCP is IPv6 and NAT44 is IPv4 only: choose a renderer that serves IPv6\n",
		},
		{
			"unusable values",
			[]*messages.Frontend{
				serving("web", 80, tcp, "10.1.1.3:80"),
				serving("10.96.0.1", 0, tcp, "10.1.1.3:80"),
				serving("10.96.0.1", 65536, tcp, "10.1.1.3:80"),
				as(serving("10.96.0.1", 80, tcp, "10.1.1.3:80", "[fd00::2]:80", "192.0.2.1:2"), func(f *messages.Frontend) {
					f.Backends = append(f.Backends, &messages.Backend{Address: "web", Port: 1}, &messages.Backend{Address: "10.1.1.4"})
				}),
				serving("10.96.0.1", 81, tcp, "[fd00::2]:80"),
			},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.1.3:80*7\n" +
				"! ports[http].address: frontend web:80/TCP is not an address and a port\n" +
				"! ports[http].address: frontend 10.96.0.1:0/TCP is not an address and a port\n" +
				"! ports[http].address: frontend 10.96.0.1:65536/TCP is not an address and a port\n" +
				"! ports[http].endpoints: endpoint fd00::2:80 of 10.96.0.1:80/TCP: not an IPv4 address\n" +
				"! ports[http].endpoints: endpoint 192.0.2.1:2 of 10.96.0.1:80/TCP: reserved for the renderer\n" +
				"! ports[http].endpoints: endpoint web:1 of 10.96.0.1:80/TCP: not an IPv4 address\n" +
				"! ports[http].endpoints: endpoint 10.1.1.4:0 of 10.96.0.1:80/TCP: not a port\n" +
				"! ports[http].endpoints: endpoint fd00::2:80 of 10.96.0.1:81/TCP: not an IPv4 address\n",
		},
		{"nothing to serve", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			view := &messages.ServiceView{Key: "default/web", Frontends: c.frontends}
			check(t, "plan", c.want, planText(Plan(view, testConfig)))
		})
	}
}

func externalIP(f *messages.Frontend) { f.Kind = messages.FrontendKind_KIND_EXTERNAL_IP }

// TestPlanGuarded: where packets are dropped in front of a row, the row is for all other clients,
// and nothing is reported.
func TestPlanGuarded(t *testing.T) {
	cluster := func(backends ...string) *messages.Frontend { return serving("10.96.0.1", 80, tcp, backends...) }
	dropped := action(messages.Action_ACTION_DROP)
	for _, c := range []struct {
		name      string
		frontends []*messages.Frontend
		want      string
	}{
		{
			"policy Local, no endpoint here",
			[]*messages.Frontend{
				as(cluster("10.1.2.3:80"), external, from(local), masqueraded("node")),
				as(cluster(), external, from(remote), dropped),
			},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.2.3:80*7\n",
		},
		{
			"no endpoint here, and none elsewhere",
			[]*messages.Frontend{
				as(cluster(), external, from(local), action(messages.Action_ACTION_REJECT)), as(cluster(), external, from(remote), dropped),
			},
			"refuse 10.96.0.1:80/TCP\n~ 10.96.0.1:80/TCP: reject: connection refused -> no row: the packet follows the routes of VPP\n",
		},
		{"dropped for all", []*messages.Frontend{as(cluster(), dropped)}, "refuse 10.96.0.1:80/TCP\n"},
		{
			"dropped for each",
			[]*messages.Frontend{as(cluster(), from(local), dropped), as(cluster(), from(remote), dropped)},
			"refuse 10.96.0.1:80/TCP\n",
		},
		{
			"policy Local for UDP, no endpoint here: nothing drops in front of an external IP, so nothing is served",
			[]*messages.Frontend{
				as(serving("203.0.113.7", 53, messages.Protocol_UDP, "10.1.2.3:53"), external, from(local), masqueraded("node"), externalIP),
				as(serving("203.0.113.7", 53, messages.Protocol_UDP), external, from(remote), dropped, externalIP),
			},
			"refuse 203.0.113.7:53/UDP\n" +
				"~ 203.0.113.7:53/UDP: drop -> no row: the packet follows the routes of VPP\n" +
				"~ 203.0.113.7:53/UDP: from local: 1 endpoints -> as for all clients: drop\n",
		},
		{
			"two rows would be needed",
			[]*messages.Frontend{
				as(cluster("10.1.1.3:80*", "10.1.2.3:80"), nodePort, from(local), masqueraded("node")),
				as(cluster("10.1.1.3:80*"), nodePort, from(remote)),
			},
			"10.96.0.1:80/TCP out2in-only,self-twice-nat 10.1.1.3:80*7\n" +
				"~ 10.96.0.1:80/TCP: from local: 2 endpoints -> as for all clients: 1 endpoints\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig
			cfg.Guarded = true
			check(t, "plan", c.want, planText(Plan(&messages.ServiceView{Key: "default/web", Frontends: c.frontends}, cfg)))
		})
	}
}

func TestPlanIPv6Elsewhere(t *testing.T) {
	cfg := testConfig
	cfg.IPv6Elsewhere = true
	view := &messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{serving("fd00::1", 80, tcp, "[fd00::2]:80")}}
	check(t, "plan", "", planText(Plan(view, cfg)))
}

func TestPlanWithoutTwiceNATAddress(t *testing.T) {
	f := as(serving("10.96.0.1", 80, tcp, "10.1.2.3:80"), external, masqueraded("pod", "node", "remote"))
	plan := Plan(&messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{f}}, Config{})
	check(t, "plan", "10.96.0.1:80/TCP out2in-only,twice-nat 10.1.2.3:80*7\n"+
		"~ 10.96.0.1:80/TCP: the source of every client replaced -> connections dropped\n", planText(plan))
}

// TestPlanTag checks that the tag of a row has its service and the properties that a dump does not
// return.
func TestPlanTag(t *testing.T) {
	f := as(serving("10.96.0.1", 80, tcp, "10.1.2.3:80"), func(f *messages.Frontend) { f.AffinitySeconds, f.PortName = 60, "https" })
	plan := Plan(&messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{f}}, testConfig)
	tag, ok := ParseTag(plan.Rows[0].Tag)
	if want := (Tag{Hash: ServiceHash("default/web"), Affinity: 60}); !ok || tag != want {
		t.Errorf("tag is %+v, want %+v", tag, want)
	}
	if !plan.Rows[0].Pads {
		t.Error("the row has no pads")
	}
	if plan = Plan(&messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{f}}, Config{}); plan.Rows[0].Pads {
		t.Error("the row has pads although none are configured")
	}
}

func TestPlanWeightClasses(t *testing.T) {
	for _, c := range []struct {
		backends, rows int
		weight         uint8
		flags          Flags
		report         string
	}{
		{1, 1, 7, SelfTwiceNAT, ""},
		{36, 36, 7, SelfTwiceNAT, ""},
		{37, 37, 2, SelfTwiceNAT, ""},
		{127, 127, 2, SelfTwiceNAT, ""},
		{36, 36, 7, TwiceNAT, ""},
		{64, 64, 2, TwiceNAT, ""},
		{127, 127, 2, TwiceNAT, ""},
		{128, 127, 2, SelfTwiceNAT, "128 endpoints -> 127 endpoints, local ones first"},
		{1000, 127, 2, TwiceNAT, "1000 endpoints -> 127 endpoints, local ones first"},
	} {
		t.Run(fmt.Sprint(c.backends, c.flags), func(t *testing.T) {
			f := serving("10.96.0.1", 80, tcp, endpoints(c.backends)...)
			if c.flags == TwiceNAT {
				as(f, external, masqueraded("pod", "node", "remote"))
			}
			plan := Plan(&messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{f}}, testConfig)
			row := plan.Rows[0]
			if len(row.Locals) != c.rows || row.Flags != Out2InOnly|c.flags || !row.load().safe() {
				t.Errorf("%d locals, flags %s, load %+v", len(row.Locals), row.Flags, row.load())
			}
			for _, l := range row.Locals {
				if l.Weight != c.weight {
					t.Fatalf("local %s has weight %d, want %d", l, l.Weight, c.weight)
				}
			}
			var got []string
			for _, a := range plan.Approximations {
				got = append(got, a.GetWanted()+" -> "+a.GetRendered())
			}
			if strings.Join(got, "\n") != c.report {
				t.Errorf("approximations %q, want %q", got, c.report)
			}
		})
	}
}

// genFrontends draws rules as kube/service makes them.
func genFrontends(t *rapid.T) []*messages.Frontend {
	var all []*messages.Frontend
	for port := range uint32(rapid.IntRange(0, 4).Draw(t, "frontends")) {
		var backends []string
		for _, host := range rapid.SliceOfNDistinct(rapid.IntRange(0, 999), 1, 400, rapid.ID[int]).Draw(t, "backends") {
			text := fmt.Sprintf("10.1.%d.%d:8080", host/250, host%250)
			if rapid.Bool().Draw(t, "local") {
				text += "*"
			}
			backends = append(backends, text)
		}
		f := serving("10.96.0.1", port+1, tcp, backends...)
		f.Scope = messages.Scope(rapid.IntRange(0, 2).Draw(t, "scope"))
		f.AffinitySeconds = rapid.SampledFrom([]uint32{0, 10800}).Draw(t, "affinity")
		f.MasqueradeFrom = rapid.SampledFrom([][]string{nil, {"node"}, {"node", "remote"}, {"pod", "node", "remote"}}).Draw(t, "masquerade")
		f.Action = messages.Action(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "action"))
		all = append(all, f)
	}
	return all
}

// TestPlanProperties: whatever the view, every row can be sent, every frontend is accounted for,
// local backends are never left out for remote ones, and the order of backends does not matter.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		view := &messages.ServiceView{Key: "default/web", Frontends: genFrontends(t)}
		plan := Plan(view, testConfig)
		if got := len(plan.Rows) + len(plan.Refused); got != len(view.GetFrontends()) {
			t.Fatalf("%d of %d frontends are accounted for", got, len(view.GetFrontends()))
		}
		for _, row := range plan.Rows {
			if _, err := compose(Op{Verb: AddRow, Key: row.Key, Row: &row}); err != nil {
				t.Fatal(err)
			}
			f := view.GetFrontends()[row.Port-1]
			if want := min(len(f.GetBackends()), MaxBackends); len(row.Locals) != want {
				t.Fatalf("%d of %d backends are in the row", len(row.Locals), len(f.GetBackends()))
			}
			planned := map[string]bool{}
			for _, l := range row.Locals {
				planned[l.Addr.String()] = true
			}
			leftOut := func(b *messages.Backend) bool { return b.GetLocal() && !planned[b.GetAddress()] }
			remoteIn := func(b *messages.Backend) bool { return !b.GetLocal() && planned[b.GetAddress()] }
			if slices.ContainsFunc(f.GetBackends(), leftOut) && slices.ContainsFunc(f.GetBackends(), remoteIn) {
				t.Fatal("a remote backend has the place of a local one")
			}
		}
		for _, f := range view.GetFrontends() {
			slices.Reverse(f.GetBackends())
		}
		if d := diff(plan.Rows, Plan(view, testConfig).Rows); d != "" {
			t.Fatalf("the order of backends matters:\n%s", d)
		}
	})
}
