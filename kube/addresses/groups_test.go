package addresses

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLay: ranges, avoided bytes and IDs of a pool; an address => its group and how many it has.
func TestLay(t *testing.T) {
	for name, c := range map[string]struct {
		ranges      []string
		avoid       []byte
		first, last uint8
		addr, group string // "" = none
		members     int
	}{
		"one address for each ID":    {[]string{"192.0.2.0/24"}, []byte{0, 255}, 1, 255, "192.0.2.254", "254/IPv4", 1},
		"avoided":                    {[]string{"192.0.2.0/24"}, []byte{0, 255}, 1, 255, "192.0.2.255", "", 0},
		"more addresses than IDs":    {[]string{"192.0.2.0/24"}, nil, 1, 255, "192.0.2.255", "128/IPv4", 2},
		"the last group is smaller":  {[]string{"192.0.2.1-192.0.2.7"}, nil, 10, 12, "192.0.2.7", "12/IPv4", 1},
		"ranges in their order":      {[]string{"198.51.100.8/31", "192.0.2.0/31"}, nil, 5, 9, "192.0.2.0", "7/IPv4", 1},
		"families are counted apart": {[]string{"2001:db8::/127", "192.0.2.0/31"}, nil, 5, 9, "192.0.2.0", "5/IPv4", 1},
		"IPv6":                       {[]string{"2001:db8::/64"}, nil, 1, 255, "2001:db8::59a5", "255/IPv6", maxMembersIPv6},
		"no room in IPv6":            {[]string{"2001:db8::/64"}, nil, 1, 255, "2001:db8::59a6", "", 0},
		"no room in IPv4":            {[]string{"10.0.0.0/8"}, nil, 1, 2, "10.0.1.254", "", 0},
		"another network":            {[]string{"192.0.2.0/24"}, nil, 1, 255, "192.0.3.1", "", 0},
		"to the last address of all": {[]string{"255.255.255.254/31"}, nil, 255, 255, "255.255.255.255", "255/IPv4", 2},
	} {
		p := &Pool{Avoid: c.avoid, First: c.first, Last: c.last}
		for _, text := range c.ranges {
			r, err := ParseRange(text)
			if err != nil {
				t.Fatal(err)
			}
			p.Ranges = append(p.Ranges, r)
		}
		l := p.Lay()
		g, found := l.Group(netip.MustParseAddr(c.addr))
		if found != (c.group != "") || found && g.String() != c.group || len(l.Members[g]) != c.members {
			t.Errorf("%s: %s is in %s, found %t, %d members", name, c.addr, g, found, len(l.Members[g]))
		}
	}
}

// TestFewGroupsMove: when a node goes, only its groups get another owner.
func TestFewGroupsMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(rapid.StringMatching("n[0-9]{1,3}"), 2, 40, rapid.ID).Draw(t, "nodes")
		gone := rapid.IntRange(0, len(nodes)-1).Draw(t, "gone")
		owner := func(g Group, all []string) string {
			return slices.MaxFunc(all, func(a, b string) int { return int(g.Priority(a)) - int(g.Priority(b)) })
		}
		rest := slices.Delete(slices.Clone(nodes), gone, gone+1)
		for id := range 255 {
			g := Group{uint8(id + 1), id%2 == 0}
			if before, after := owner(g, nodes), owner(g, rest); before != after && before != nodes[gone] {
				t.Fatalf("group %s moved from %s to %s, though %s went", g, before, after, nodes[gone])
			}
		}
	})
}

// TestOwnersSpread: 200 groups over 5 nodes.
func TestOwnersSpread(t *testing.T) {
	owns := map[string]int{}
	for id := range 200 {
		g, most, owner := Group{ID: uint8(id + 1)}, uint8(0), ""
		for n := range 5 {
			node := fmt.Sprintf("node-%d", n)
			if p := g.Priority(node); p < lowest || p > highest {
				t.Fatalf("priority %d", p)
			} else if p > most {
				most, owner = p, node
			}
		}
		owns[owner]++
	}
	for node, n := range owns {
		if n < 20 || n > 60 || len(owns) != 5 {
			t.Errorf("%s owns %d of 200 groups: %v", node, n, owns)
		}
	}
}
