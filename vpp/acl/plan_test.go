package acl

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

const (
	tcp       = messages.Protocol_TCP
	udpIP     = messages.Protocol_UDP
	remote    = messages.ClientClass_FROM_REMOTE
	local     = messages.ClientClass_FROM_LOCAL
	anyClient = messages.ClientClass_FROM_ANY
)

// from returns the rule of Kubernetes for another class of clients.
func from(f *messages.Frontend, class messages.ClientClass) *messages.Frontend {
	f.From = class
	return f
}

// rejecting returns the rule of Kubernetes with another action.
func rejecting(f *messages.Frontend) *messages.Frontend {
	f.Action = messages.Action_ACTION_REJECT
	return f
}

func TestPlan(t *testing.T) {
	const lb, web = "203.0.113.10", "203.0.113.10:80/TCP"
	upper := []string{"128.0.0.0/1"}
	for _, c := range []struct {
		name      string
		frontends []*messages.Frontend
		rules     []Rule
	}{
		{"no restriction", []*messages.Frontend{serving(lb, 80, tcp), rejecting(serving(lb, 81, tcp))}, nil},
		{
			"source ranges",
			[]*messages.Frontend{serving(lb, 80, tcp, upper...)},
			[]Rule{denying(Any, web, "0.0.0.0/1")},
		},
		{
			"source ranges in front of a reject",
			[]*messages.Frontend{rejecting(serving(lb, 80, tcp, upper...))},
			[]Rule{denying(Any, web, "0.0.0.0/1")},
		},
		{"source ranges that hold all clients", []*messages.Frontend{serving(lb, 80, tcp, "0.0.0.0/1", "128.0.0.0/1")}, nil},
		{
			"source ranges of both families",
			[]*messages.Frontend{serving(lb, 80, tcp, "128.0.0.0/1", "fd00::/8")},
			[]Rule{denying(Any, web, "0.0.0.0/1")},
		},
		{
			"two rules with the same ranges are one",
			[]*messages.Frontend{from(serving(lb, 80, tcp, upper...), local), from(serving(lb, 80, tcp, upper...), remote)},
			[]Rule{denying(Any, web, "0.0.0.0/1")},
		},
		{
			"policy Local without local endpoints",
			[]*messages.Frontend{from(serving(lb, 80, tcp), local), dropping(lb, 80, tcp, remote)},
			[]Rule{denying(Remote, web, "0.0.0.0/0")},
		},
		{
			"policy Local without local endpoints, with ranges",
			[]*messages.Frontend{from(serving(lb, 80, tcp, upper...), local), func() *messages.Frontend {
				f := dropping(lb, 80, tcp, remote)
				f.AllowSources = upper
				return f
			}()},
			[]Rule{denying(Remote, web, "0.0.0.0/0"), denying(Any, web, "0.0.0.0/1")},
		},
		{
			"internal policy Local without local endpoints",
			[]*messages.Frontend{dropping("10.96.0.1", 53, udpIP, anyClient)},
			[]Rule{denying(Any, "10.96.0.1:53/UDP", "0.0.0.0/0")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := Plan(view("default/web", c.frontends...), Config{})
			check(t, "rules", c.rules, plan.Rules())
			check(t, "unrendered", nil, plan.Unrendered)
			check(t, "service", "default/web", plan.Service)
			if ranged := len(plan.Ranges) > 0; ranged != (len(plan.Unserved) > 0) || ranged != (len(plan.Ranged) > 0) {
				// the plan of the rows reports drops
				t.Errorf("rules %v of %v, but without them %v", plan.Ranges, plan.Ranged, plan.Unserved)
			}
			check(t, "needs", max(len(forInterface(c.rules, Remote)), len(forInterface(c.rules, Local))), plan.Needs)
		})
	}
}

// TestUnrendered: frontends that VPP cannot match are reported.
func TestUnrendered(t *testing.T) {
	for _, c := range []struct {
		name     string
		frontend *messages.Frontend
		cfg      Config
		rules    []Rule
		field    string
		text     string
	}{
		{"SCTP", dropping("10.96.0.1", 80, messages.Protocol_SCTP, anyClient), Config{}, nil, "ports[http].protocol", "10.96.0.1:80/SCTP is not guarded"},
		{"IPv6", serving("fd00::1", 80, tcp, "fd00::/8"), Config{}, nil, "ports[http].address", "[fd00::1]:80/TCP is IPv6"},
		{"IPv6 elsewhere", serving("fd00::1", 80, tcp, "fd00::/8"), Config{IPv6Elsewhere: true}, nil, "", ""},
		{"no address", serving("lb.example", 80, tcp, "10.0.0.0/8"), Config{}, nil, "ports[http].address", "lb.example:80/TCP is not an address"},
		{"no port", serving("10.96.0.1", 0, tcp, "10.0.0.0/8"), Config{}, nil, "ports[http].address", "10.96.0.1:0/TCP is not an address"},
		{"large port", serving("10.96.0.1", 65536, tcp, "10.0.0.0/8"), Config{}, nil, "ports[http].address", "is not an address and a port"},
		{"zone", serving("fe80::1%eth0", 80, tcp, "10.0.0.0/8"), Config{}, nil, "ports[http].address", "is not an address and a port"},
		{
			"no network", serving("10.96.0.1", 80, tcp, "office"),
			Config{},
			[]Rule{denying(Any, "10.96.0.1:80/TCP", "0.0.0.0/0")},
			"ports[http].allowSources", `"office" is not a network; it admits no client`,
		},
		{"nothing to guard", serving("fd00::1", 80, messages.Protocol_SCTP), Config{}, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := Plan(view("default/web", c.frontend), c.cfg)
			check(t, "rules", c.rules, plan.Rules())
			if c.text == "" {
				check(t, "unrendered", nil, plan.Unrendered)
				return
			}
			if len(plan.Unrendered) != 1 {
				t.Fatalf("unrendered %v", plan.Unrendered)
			}
			e := plan.Unrendered[0]
			if e.GetSource() != "acl" || e.GetObject() != "default/web" || e.GetField() != c.field || !strings.Contains(e.GetMessage(), c.text) {
				t.Errorf("unrendered %v", e)
			}
		})
	}
}

// TestUDPAtAddressesOfOthers: there is no rule for UDP where it would drop fragments to other
// ports; a frontend with source ranges is closed then.
func TestUDPAtAddressesOfOthers(t *testing.T) {
	of := func(kind messages.FrontendKind, f *messages.Frontend) *messages.Frontend {
		f.Kind = kind
		return f
	}
	host := netip.MustParseAddr("192.168.16.1")
	cfg := Config{Ground: rule.Ground{Hosts: map[netip.Addr]bool{host: true}}}
	plan := Plan(view("default/dns",
		of(messages.FrontendKind_KIND_EXTERNAL_IP, dropping("203.0.113.9", 53, udpIP, remote)),
		of(messages.FrontendKind_KIND_NODE_PORT, dropping(host.String(), 30053, udpIP, remote)),
		of(messages.FrontendKind_KIND_LOAD_BALANCER_IP, dropping(host.String(), 53, udpIP, remote)),
		of(messages.FrontendKind_KIND_LOAD_BALANCER_IP, serving(host.String(), 54, udpIP, "10.0.0.0/8")),
	), cfg)
	check(t, "rules", nil, plan.Rules())
	check(t, "approximations", nil, plan.Approximations)
	check(t, "closed", []rule.Key{{Addr: host, Port: 54, Proto: rule.UDP}}, plan.Closed)
	if len(plan.Unrendered) != 1 || !strings.Contains(plan.Unrendered[0].GetMessage(), whyClosed) {
		t.Errorf("unrendered %v", plan.Unrendered)
	}
	plan = Plan(view("default/dns", of(messages.FrontendKind_KIND_EXTERNAL_IP, dropping("203.0.113.9", 53, tcp, remote))), cfg)
	check(t, "rules for TCP", 1, len(plan.Rules()))
}

func TestReports(t *testing.T) {
	plan := Plan(view("default/dns",
		from(serving("203.0.113.10", 53, tcp, "10.0.0.0/8"), local), from(serving("203.0.113.10", 53, udpIP, "10.0.0.0/8"), local),
		dropping("203.0.113.10", 53, udpIP, remote),
	), Config{})
	check(t, "approximations", []*messages.Approximation{{
		Service: "default/dns", Frontend: "203.0.113.10:53/UDP", Wanted: "datagrams to port 53 dropped",
		Rendered: "also those to other UDP ports of 203.0.113.10 that come in fragments, from the same clients", Why: whyFragments,
	}, {
		Service: "default/dns", Frontend: "203.0.113.10:53/UDP", Wanted: "from remote: drop, by the address of the client",
		Rendered: "drop what enters from outside this node, whatever its address", Why: whyClass,
	}}, plan.Approximations)
	var wanted []string
	for _, a := range plan.Unserved {
		wanted = append(wanted, a.GetFrontend()+" "+a.GetWanted())
	}
	check(t, "without the rules", []string{
		"203.0.113.10:53/TCP only clients from 10.0.0.0/8", "203.0.113.10:53/UDP only clients from 10.0.0.0/8",
	}, wanted)
}

// ranges makes n networks none of which is next to another one.
func ranges(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.%d.%d.0/24", i/128, 2*(i%128))
	}
	return all
}

// TestTooManyRanges: a service with more rules than it may have gets none, and its frontends are
// known.
func TestTooManyRanges(t *testing.T) {
	for _, c := range []struct {
		name      string
		frontends []*messages.Frontend
		ranged    int
		none      bool
	}{
		{"as many as fit", []*messages.Frontend{serving("203.0.113.10", 80, tcp, ranges(MaxServiceRules-64)...)}, 1, false},
		{"more", []*messages.Frontend{serving("203.0.113.10", 80, tcp, ranges(MaxServiceRules)...)}, 1, true},
		{"many times more", manyRanged(1000, ranges(MaxServiceRules-64)), 1000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := Plan(view("default/web", c.frontends...), Config{})
			if none := len(plan.Rules()) == 0; none != c.none || c.none != (plan.Needs > MaxServiceRules) || len(plan.Ranged) != c.ranged {
				t.Errorf("%d rules, needs %d, of %d frontends", len(plan.Rules()), plan.Needs, len(plan.Ranged))
			}
			check(t, "without the rules", c.ranged, len(plan.Unserved))
		})
	}
}

// manyRanged makes ports with the same source ranges.
func manyRanged(ports uint32, sources []string) (all []*messages.Frontend) {
	for port := range ports {
		all = append(all, serving("203.0.113.10", 1+port, tcp, sources...))
	}
	return all
}

// TestRoutedDrops: packets that a route drops need no rule, unless another port of the address is
// served or refused.
func TestRoutedDrops(t *testing.T) {
	cluster := func(f *messages.Frontend) *messages.Frontend {
		f.Scope = messages.Scope_SCOPE_CLUSTER
		return f
	}
	node := func(f *messages.Frontend) *messages.Frontend {
		f.Scope = messages.Scope_SCOPE_NODEPORT
		return f
	}
	const vip = "10.96.0.1"
	drop80, drop81 := cluster(dropping(vip, 80, tcp, anyClient)), cluster(dropping(vip, 81, tcp, anyClient))
	for _, c := range []struct {
		name      string
		frontends []*messages.Frontend
		cfg       Config
		want      int
	}{
		{"all ports drop", []*messages.Frontend{drop80, drop81}, Config{Routed: true}, 0},
		{"without routes", []*messages.Frontend{drop80, drop81}, Config{}, 2},
		{"another port is served", []*messages.Frontend{drop80, cluster(serving(vip, 81, tcp))}, Config{Routed: true}, 1},
		{"another port is refused", []*messages.Frontend{cluster(rejecting(serving(vip, 79, tcp))), drop80}, Config{Routed: true}, 1},
		{"another address is served", []*messages.Frontend{drop80, drop81, cluster(serving("10.96.0.2", 81, tcp))}, Config{Routed: true}, 0},
		{"node port", []*messages.Frontend{node(dropping(vip, 80, tcp, remote))}, Config{Routed: true}, 1},
	} {
		check(t, c.name, c.want, len(Plan(view("default/web", c.frontends...), c.cfg).Drops))
	}
}

// TestPlanMeansTheView: for every packet to a frontend, the rules drop what Kubernetes drops before
// it looks at endpoints.
func TestPlanMeansTheView(t *testing.T) {
	u := newUniverse("10.0.0.0/26")
	rapid.Check(t, func(t *rapid.T) {
		var all []*messages.Frontend
		for port := range uint32(rapid.IntRange(0, 3).Draw(t, "ports")) {
			var sources []string
			for _, p := range genNetworks(u).Draw(t, "sources") {
				sources = append(sources, p.String())
			}
			rows := []messages.ClientClass{anyClient}
			if rapid.Bool().Draw(t, "two rows") {
				rows = []messages.ClientClass{local, remote}
			}
			for _, row := range rows {
				f := from(serving("203.0.113.10", 80+port, tcp, sources...), row)
				f.Action = rapid.SampledFrom([]messages.Action{0, messages.Action_ACTION_REJECT, messages.Action_ACTION_DROP}).Draw(t, "action")
				all = append(all, f)
			}
		}
		plan := Plan(view("default/web", all...), Config{})
		rules := plan.Rules()
		for _, f := range all {
			for _, addr := range u.addrs {
				want := f.GetAction() == messages.Action_ACTION_DROP || len(f.GetAllowSources()) > 0 && !allows(f.GetAllowSources(), addr)
				to := Rule{VIP: netip.MustParseAddr(f.GetAddress()), Port: uint16(f.GetPort()), Proto: 6}
				for _, at := range []Class{Remote, Local} {
					if classOf(f.GetFrom()).appliesTo(at) && dropped(rules, at, packet{src: addr, to: to}) != want {
						t.Fatalf("%s from %s at %s: dropped is not %v: %v", f, addr, at, want, rules)
					}
				}
			}
		}
	})
}

// allows is loadBalancerSourceRanges.
func allows(sources []string, addr netip.Addr) bool {
	for _, text := range sources {
		if netip.MustParsePrefix(text).Contains(addr) {
			return true
		}
	}
	return false
}
