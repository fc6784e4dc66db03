package hostroute

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

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
