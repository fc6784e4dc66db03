package acl

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMinimal(t *testing.T) {
	const web, dns = "10.96.0.1:80/TCP", "10.96.0.1:53/UDP"
	for _, c := range []struct {
		name     string
		in, want []Rule
	}{
		{"nothing", nil, nil},
		{
			"order",
			[]Rule{denying(Any, web, "10.0.0.0/8"), denying(Any, dns, "10.0.0.0/8"), denying(Any, web, "9.0.0.0/8")},
			[]Rule{denying(Any, dns, "10.0.0.0/8"), denying(Any, web, "9.0.0.0/8"), denying(Any, web, "10.0.0.0/8")},
		},
		{"duplicates", []Rule{denying(Any, web, "10.0.0.0/8"), denying(Any, web, "10.0.0.0/8")}, []Rule{denying(Any, web, "10.0.0.0/8")}},
		{"classes unite", []Rule{denying(Remote, web, "10.0.0.0/8"), denying(Local, web, "10.0.0.0/8")}, []Rule{denying(Any, web, "10.0.0.0/8")}},
		{"a network covers its parts", []Rule{denying(Remote, web, "10.1.0.0/16"), denying(Any, web, "10.0.0.0/8")}, []Rule{denying(Any, web, "10.0.0.0/8")}},
		{
			"not for other clients",
			[]Rule{denying(Any, web, "10.1.0.0/16"), denying(Remote, web, "10.0.0.0/8")},
			[]Rule{denying(Remote, web, "10.0.0.0/8"), denying(Any, web, "10.1.0.0/16")},
		},
		{
			"the outer one of two counts",
			[]Rule{denying(Any, web, "0.0.0.0/0"), denying(Remote, web, "10.0.0.0/8"), denying(Local, web, "10.1.0.0/16"), denying(Any, dns, "10.1.0.0/16")},
			[]Rule{denying(Any, dns, "10.1.0.0/16"), denying(Any, web, "0.0.0.0/0")},
		},
		{
			"after a part comes a neighbour",
			[]Rule{denying(Remote, web, "10.0.0.0/8"), denying(Local, web, "10.0.0.0/9"), denying(Local, web, "11.0.0.0/8"), denying(Local, web, "11.1.0.0/16")},
			[]Rule{denying(Remote, web, "10.0.0.0/8"), denying(Local, web, "10.0.0.0/9"), denying(Local, web, "11.0.0.0/8")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.in)
			check(t, "rules", c.want, Minimal(c.in))
			check(t, "argument", before, c.in)
		})
	}
}

func TestRuleText(t *testing.T) {
	check(t, "text", "drop 10.96.0.1:80/TCP from 10.0.0.0/8 (remote)", denying(Remote, "10.96.0.1:80/TCP", "10.0.0.0/8").String())
}

func TestValid(t *testing.T) {
	good := denying(Any, "10.96.0.1:80/TCP", "10.0.0.0/8")
	for name, change := range map[string]func(*Rule){
		"no port":         func(r *Rule) { r.Port = 0 },
		"no address":      func(r *Rule) { r.VIP = netip.Addr{} },
		"a zone":          func(r *Rule) { r.VIP = netip.MustParseAddr("fe80::1%eth0") },
		"SCTP":            func(r *Rule) { r.Proto = 132 },
		"no sources":      func(r *Rule) { r.From = netip.Prefix{} },
		"host bits":       func(r *Rule) { r.From = netip.MustParsePrefix("10.0.0.1/8") },
		"another family":  func(r *Rule) { r.From = netip.MustParsePrefix("fd00::/8") },
		"another family2": func(r *Rule) { r.VIP = netip.MustParseAddr("fd00::1") },
	} {
		bad := good
		if change(&bad); bad.valid() {
			t.Errorf("%s: %s is valid", name, bad)
		}
	}
	if six := denying(Any, "[fd00::1]:80/TCP", "fd00::/8"); !good.valid() || !six.valid() {
		t.Error("a good rule is not valid")
	}
}

// packet is a packet that rules may match.
type packet struct {
	src  netip.Addr
	to   Rule // VIP, Port, Proto
	icmp bool
}

// dropped is the meaning of rules: one that applies on the interface and matches is enough.
func dropped(rules []Rule, at Class, p packet) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool {
		return !p.icmp && r.Class.appliesTo(at) && r.Key() == p.to.Key() && r.From.Contains(p.src)
	})
}

// Few frontends and sources, so that rules meet.
var (
	frontends = []Rule{
		denying(0, "10.96.0.1:80/TCP", "0.0.0.0/0"), denying(0, "10.96.0.1:80/UDP", "0.0.0.0/0"), denying(0, "10.96.0.1:443/TCP", "0.0.0.0/0"),
		denying(0, "192.0.2.1:80/TCP", "0.0.0.0/0"),
	}
	clients = newUniverse("10.0.0.0/28").addrs
)

// genRules draws rules.
func genRules(most int) *rapid.Generator[[]Rule] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Rule {
		r := rapid.SampledFrom(frontends).Draw(t, "frontend")
		r.Class = rapid.SampledFrom(classes[:]).Draw(t, "class")
		r.From = netip.PrefixFrom(rapid.SampledFrom(clients).Draw(t, "client"), rapid.SampledFrom([]int{0, 28, 29, 30, 31, 32, 32}).Draw(t, "bits")).Masked()
		return r
	}), 0, most)
}

// eachPacket calls with every packet of the small world.
func eachPacket(each func(packet)) {
	for _, src := range append(slices.Clone(clients), netip.MustParseAddr("192.168.50.2")) {
		for _, to := range frontends {
			each(packet{src: src, to: to})
			each(packet{src: src, to: to, icmp: true})
		}
	}
}

// TestMinimalMeansTheSame: on interfaces of one class of clients the same packets are dropped;
// where both classes enter, at least the same; and no rule is left that another one makes
// superfluous.
func TestMinimalMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := genRules(12).Draw(t, "rules")
		got := Minimal(rules)
		eachPacket(func(p packet) {
			for _, at := range []Class{Remote, Local} {
				if dropped(rules, at, p) != dropped(got, at, p) {
					t.Fatalf("%v means something else at %s for %v: %v", got, at, p, rules)
				}
			}
			if dropped(rules, Any, p) && !dropped(got, Any, p) || dropped(got, Any, p) && !(dropped(rules, Remote, p) && dropped(rules, Local, p)) {
				t.Fatalf("%v means something else where all enter for %v: %v", got, p, rules)
			}
		})
		if !slices.IsSortedFunc(got, Rule.Compare) || !slices.Equal(Minimal(got), got) {
			t.Fatalf("not minimal: %v", got)
		}
		for i, r := range got {
			for j, other := range got {
				if i != j && other.contains(r) && other.Class&r.Class == r.Class {
					t.Fatalf("%s makes %s superfluous", other, r)
				}
			}
		}
	})
}
