package hostroute

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Protocol marks the routes of the agent in the kernel (rtm_protocol). No routing daemon of
// /etc/iproute2/rt_protos has it.
const Protocol = 84

// Route is a unicast route of the kernel.
type Route struct {
	// Table is 0 for the main table, or Table.
	Table uint8
	// Prefix is the destination.
	Prefix netip.Prefix
	// Gateway is the next hop; the zero value is a route without one.
	Gateway netip.Addr
	// Link is the index of the interface.
	Link int
	// Source is the address that packets get whose process has chosen none; the zero value leaves
	// the choice to the kernel.
	Source netip.Addr
	// Protocol identifies the owner of the route.
	Protocol uint8
	// Metric distinguishes routes to the same destination; the kernel uses the lowest one.
	Metric uint32
}

// Changes lead from the routes of the kernel to the wanted routes.
type Changes struct {
	Remove, Add []Route // in this order
	// Foreign are routes of other owners in the place of routes of the agent.
	Foreign []Route
}

// defaultMetric is the metric of an IPv6 route that was added without one.
const defaultMetric = 1024

// Plan compares the networks that should have a route like this one with the routes of its table.
// Without networks it removes all routes of the agent.
func Plan(networks []netip.Prefix, like Route, have []Route) Changes {
	like.Protocol = Protocol
	if like.Gateway.Is6() {
		like.Metric = defaultMetric
	}
	to := func(n netip.Prefix) Route {
		r := like
		r.Prefix = n
		return r
	}
	var c Changes
	have = slices.DeleteFunc(slices.Clone(have), func(r Route) bool { return r.Table != like.Table })
	for _, n := range networks {
		if at := slices.IndexFunc(have, func(r Route) bool { return r.Prefix == n && r.Protocol != Protocol }); at >= 0 {
			c.Foreign = append(c.Foreign, have[at])
			continue
		}
		want := to(n)
		if !slices.Contains(have, want) && !slices.Contains(c.Add, want) {
			c.Add = append(c.Add, want)
		}
	}
	for _, r := range have {
		wanted := r == to(r.Prefix) && slices.Contains(networks, r.Prefix) &&
			!slices.ContainsFunc(c.Foreign, func(f Route) bool { return f.Prefix == r.Prefix })
		if r.Protocol == Protocol && !wanted {
			c.Remove = append(c.Remove, r)
		}
	}
	return c
}

// Table is the routing table of the agent. Rules lead packets to it.
const Table = 84

// Ports are a range of ports; the zero value has none.
type Ports struct{ First, Last uint16 }

// ParsePorts reads "30000-32767"; "" = none.
func ParsePorts(text string) (Ports, error) {
	if text == "" {
		return Ports{}, nil
	}
	from, to, _ := strings.Cut(text, "-")
	first, err := strconv.ParseUint(from, 10, 16)
	last, err2 := strconv.ParseUint(to, 10, 16)
	if err != nil || err2 != nil || first == 0 || last < first {
		return Ports{}, fmt.Errorf("%q is not a range of ports, for example 30000-32767", text)
	}
	return Ports{uint16(first), uint16(last)}, nil
}

// Rule leads packets of the host's processes to ports of an address to Table.
type Rule struct {
	To       netip.Addr
	Protocol uint8 // syscall.IPPROTO_TCP or IPPROTO_UDP
	Ports    Ports
	// Late means that the kernel looks up its own addresses first, so that the rule has no effect.
	Late bool
}

// rulesTo returns the rules for node ports of these addresses.
func rulesTo(addresses []netip.Addr, ports Ports) (rules []Rule) {
	for _, a := range addresses {
		for _, protocol := range []uint8{syscall.IPPROTO_TCP, syscall.IPPROTO_UDP} {
			rules = append(rules, Rule{To: a, Protocol: protocol, Ports: ports})
		}
	}
	return rules
}

// planRules compares the wanted rules with the agent's rules in the kernel.
func planRules(want, have []Rule) (remove, add []Rule) {
	return slices.DeleteFunc(slices.Clone(have), func(r Rule) bool { return slices.Contains(want, r) }),
		slices.DeleteFunc(slices.Clone(want), func(r Rule) bool { return slices.Contains(have, r) })
}
