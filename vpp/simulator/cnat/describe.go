package cnat

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Show is what "show cnat snat-policy" prints, without the details of the hash table.
func (s *SNAT) Show(nameOf func(uint32) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Source NAT\n  ip4: %s;0\n  ip6: %s;0\n\nExcluded prefixes:\n  Hash table 'snat prefixes'\n", s.IP4, s.IP6)
	order := func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	}
	for i, p := range slices.SortedFunc(maps.Keys(s.Excluded), order) {
		fmt.Fprintf(&b, "[%d]: heap offset 0, len 1, refcnt 1, linear 0\n    0: %s\n", i, p)
	}
	for table, name := range []string{"Included v4", "Included v6", "k8s pod", "k8s host"} {
		fmt.Fprintf(&b, "\n%s interfaces:\n", name)
		for _, i := range slices.SortedFunc(maps.Keys(s.Interfaces), func(a, b InterfaceTable) int { return cmp.Compare(a.SwIf, b.SwIf) }) {
			if int(i.Table) == table {
				fmt.Fprintf(&b, "  %s\n", nameOf(i.SwIf))
			}
		}
	}
	return b.String()
}

// Describe lists the configuration.
func (p *Plugin) Describe(nameOf func(uint32) string) []string {
	var lines []string
	for id, t := range p.Translations.All {
		lines = append(lines, fmt.Sprintf("translation %d: %s port %d proto %d lb %d real %d flags %d hash %d",
			id, t.VIP.Addr, t.VIP.Port, t.Proto, t.LBType, t.RealIP, t.Flags, t.Hash))
		for i, path := range t.Paths {
			lines = append(lines, fmt.Sprintf("translation %d path %d: %s port %d flags %d", id, i, path.Dst.Addr, path.Dst.Port, path.Flags))
		}
	}
	s := &p.SNAT
	if s.Policy != 0 || !s.IP4.IsUnspecified() || !s.IP6.IsUnspecified() {
		lines = append(lines, fmt.Sprintf("snat policy %d addresses %s %s", s.Policy, s.IP4, s.IP6))
	}
	for i := range s.Interfaces {
		lines = append(lines, fmt.Sprintf("snat table %d: %s", i.Table, nameOf(i.SwIf)))
	}
	for prefix := range s.Excluded {
		lines = append(lines, fmt.Sprintf("snat excludes %s", prefix))
	}
	return lines
}
