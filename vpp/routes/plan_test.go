package routes

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

func TestPlan(t *testing.T) {
	const vip, lb = "10.96.0.1", "203.0.113.7"
	on := func(f *messages.Frontend, change func(*messages.Frontend)) *messages.Frontend {
		change(f)
		return f
	}
	sctp := func(f *messages.Frontend) { f.Protocol = messages.Protocol_SCTP }
	externalIP := func(f *messages.Frontend) { f.Kind = messages.FrontendKind_KIND_EXTERNAL_IP }
	local := func(f *messages.Frontend) { f.From = messages.ClientClass_FROM_LOCAL }
	for _, c := range []struct {
		name      string
		cfg       Config
		frontends []*messages.Frontend
		want      []Claim
	}{
		{"nothing", Config{}, nil, nil},
		{"cluster IP without endpoints", Config{}, []*messages.Frontend{idle(vip, cluster, reject)}, []Claim{{at(vip), Refuse, false}}},
		{"cluster IP without local endpoints", Config{}, []*messages.Frontend{idle(vip, cluster, drop)}, []Claim{{at(vip), Ignore, false}}},
		{"cluster IP of both sorts", Config{}, []*messages.Frontend{
			idle(vip, cluster, reject), idle(vip, cluster, drop),
		}, []Claim{{at(vip), Refuse, false}}},
		{"cluster IP with endpoints", Config{}, []*messages.Frontend{idle(vip, cluster, forward)}, nil},
		{"cluster IP with endpoints, other ports", Config{OtherPorts: true}, []*messages.Frontend{idle(vip, cluster, forward)}, []Claim{{at(vip), Spare, false}}},
		{"cluster IP with a port to be dropped, other ports", Config{OtherPorts: true}, []*messages.Frontend{
			idle(vip, cluster, forward), idle(vip, cluster, drop),
		}, []Claim{{at(vip), Ignore, false}}},
		{"one port of two", Config{}, []*messages.Frontend{
			idle(vip, cluster, forward), idle(vip, cluster, reject),
		}, []Claim{{at(vip), Refuse, false}}},
		{"IPv6 cluster IP", Config{}, []*messages.Frontend{idle("fd96::1", cluster, reject)}, []Claim{{at("fd96::1"), Refuse, false}}},
		{"external address without endpoints", Config{}, []*messages.Frontend{idle(lb, external, reject)}, []Claim{{at(lb), Refuse, true}}},
		{"external address served elsewhere", Config{}, []*messages.Frontend{idle(lb, external, drop)}, []Claim{{at(lb), Leave, true}}},
		{"external address, local clients are served", Config{}, []*messages.Frontend{
			on(idle(lb, external, forward), local), idle(lb, external, drop),
		}, []Claim{{at(lb), Leave, true}}},
		{"external address, one port served elsewhere", Config{}, []*messages.Frontend{
			idle(lb, external, drop), idle(lb, external, reject),
		}, []Claim{{at(lb), Leave, true}}},
		{"external address with endpoints", Config{OtherPorts: true}, []*messages.Frontend{idle(lb, external, forward)}, []Claim{{at(lb), Leave, true}}},
		{"external SCTP has no row", Config{}, []*messages.Frontend{on(idle(lb, external, forward), sctp)}, []Claim{{at(lb), Leave, true}}},
		{"external SCTP without endpoints", Config{}, []*messages.Frontend{on(idle(lb, external, reject), sctp)}, []Claim{{at(lb), Refuse, true}}},
		{"external IPv6 has no row", Config{}, []*messages.Frontend{idle("2001:db8::7", external, forward)}, []Claim{{at("2001:db8::7"), Leave, true}}},
		{"external IP without endpoints", Config{}, []*messages.Frontend{on(idle(lb, external, reject), externalIP)}, nil},
		{"external IP with endpoints", Config{}, []*messages.Frontend{on(idle(lb, external, forward), externalIP)}, []Claim{{at(lb), Leave, true}}},
		{"load-balancer address with an external IP that is served", Config{}, []*messages.Frontend{
			idle(lb, external, reject), on(idle(lb, external, forward), externalIP),
		}, []Claim{{at(lb), Leave, true}}},
		{"node port", Config{OtherPorts: true}, []*messages.Frontend{
			idle("192.168.50.1", nodePort, reject), idle("192.168.50.1", nodePort, drop), idle("192.168.50.1", nodePort, forward),
		}, nil},
		{"external address that is a cluster IP", Config{}, []*messages.Frontend{
			idle(vip, cluster, reject), idle(vip, external, reject),
		}, []Claim{{at(vip), Refuse, false}}},
		{"what is no address", Config{}, []*messages.Frontend{
			idle("", cluster, reject), idle("web", external, reject), idle("0.0.0.0", cluster, reject), idle("127.0.0.1", external, reject),
			idle("::ffff:10.0.0.1", external, reject), idle("224.0.0.1", external, reject),
		}, nil},
		{"in order", Config{}, []*messages.Frontend{
			idle("fd96::1", cluster, reject), idle(lb, external, reject), idle(vip, cluster, drop),
		}, []Claim{{at(vip), Ignore, false}, {at(lb), Refuse, true}, {at("fd96::1"), Refuse, false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := Plan(&messages.ServiceView{Key: "default/web", Frontends: c.frontends}, c.cfg)
			check(t, "service", "default/web", plan.Service)
			check(t, "claims", c.want, plan.Claims)
		})
	}
}

// genFrontends draws frontends of few addresses.
func genFrontends(t *rapid.T) []*messages.Frontend {
	addresses := []string{"10.96.0.1", "10.96.0.2", "203.0.113.7", "192.168.50.9", "fd96::1", "2001:db8::7", "bad"}
	var all []*messages.Frontend
	for range rapid.IntRange(0, 6).Draw(t, "frontends") {
		f := idle(rapid.SampledFrom(addresses).Draw(t, "address"), messages.Scope(rapid.IntRange(0, 2).Draw(t, "scope")),
			messages.Action(rapid.IntRange(0, 2).Draw(t, "action")))
		f.Protocol = rapid.SampledFrom([]messages.Protocol{messages.Protocol_TCP, messages.Protocol_UDP, messages.Protocol_SCTP}).Draw(t, "protocol")
		all = append(all, f)
	}
	return all
}

// TestPlanIsAboutItsAddresses: the order of frontends does not matter, every claim is about an
// address of the view, and an external address is refused only where no frontend of it could be
// served by another host.
func TestPlanIsAboutItsAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{OtherPorts: rapid.Bool().Draw(t, "other ports")}
		frontends := genFrontends(t)
		claims := Plan(&messages.ServiceView{Frontends: frontends}, cfg).Claims
		if d := diff(claims, Plan(&messages.ServiceView{Frontends: rapid.Permutation(frontends).Draw(t, "order")}, cfg).Claims); d != "" {
			t.Fatalf("the order matters:\n%s", d)
		}
		for i, claim := range claims {
			if i > 0 && claims[i-1].Addr.Compare(claim.Addr) >= 0 {
				t.Fatalf("claims are not in order: %v", claims)
			}
			rejects, passes := 0, 0
			for _, f := range frontends {
				switch {
				case f.GetAddress() != claim.Addr.String():
				case f.GetAction() == reject:
					rejects++
				case f.GetScope() == external:
					passes++
				}
			}
			if claim.External && claim.Stance == Refuse && (rejects == 0 || passes > 0) {
				t.Fatalf("%+v with %d rejecting and %d passing frontends", claim, rejects, passes)
			}
			if claim.External && claim.Stance == Ignore {
				t.Fatalf("%+v: an external address is swallowed", claim)
			}
		}
	})
}
