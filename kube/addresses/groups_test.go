package addresses

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestGroups: addresses => groups.
func TestGroups(t *testing.T) {
	numbers := Numbers{First: 10, Last: 14, Shared: 2}
	local := func(addr string, created int64, nodes ...string) Announced {
		return Announced{Addr: netip.MustParseAddr(addr), Service: "s", Created: created, Local: true, Nodes: nodes}
	}
	all := []Announced{local("192.0.2.1", 1, "a"), local("192.0.2.2", 2, "b"), local("192.0.2.3", 3), local("192.0.2.4", 4, "a"), local("2001:db8::1", 5, "a")}
	groups, without := Groups(all, numbers)
	if len(groups) != 4 || len(without) != 1 || without[0].Addr != netip.MustParseAddr("192.0.2.4") {
		t.Fatalf("groups %v, without %v", groups, without)
	}
	for _, g := range groups {
		if g.Number < 12 || g.Number > 14 || len(g.Addresses) != 1 || g.Nodes == nil {
			t.Errorf("group %+v", g)
		}
	}
	if again, _ := Groups(all[1:], numbers); len(again) != 4 {
		t.Errorf("without the oldest: %v", again)
	}
	var many []Announced
	for i := range 600 {
		many = append(many, Announced{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Service: fmt.Sprint(i)})
	}
	groups, without = Groups(many, numbers)
	if len(groups) != 2 || len(groups[0].Addresses) != MaxAddressesIPv4 || len(without) != 600-2*MaxAddressesIPv4 {
		t.Errorf("%d groups, %d without", len(groups), len(without))
	}
}

// TestFewGroupsMove: an address has the same group whatever other addresses there are; when a node
// goes, only its groups get another owner, and priorities of the others keep their order.
func TestFewGroupsMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(rapid.StringMatching("n[0-9]{1,3}"), 2, 40, rapid.ID).Draw(t, "nodes")
		owner := func(g *Group, all []string) string {
			return slices.MaxFunc(all, func(a, b string) int { return int(g.Priority(a, all)) - int(g.Priority(b, all)) })
		}
		gone := rapid.IntRange(0, len(nodes)-1).Draw(t, "gone")
		rest := slices.Delete(slices.Clone(nodes), gone, gone+1)
		for number := range 255 {
			g := &Group{Number: uint8(number + 1), IPv6: number%2 == 0}
			before, after := owner(g, nodes), owner(g, rest)
			if before != after && before != nodes[gone] {
				t.Fatalf("group %d moved from %s to %s, though %s went", g.Number, before, after, nodes[gone])
			}
			seen := map[uint8]bool{}
			for _, n := range nodes {
				p := g.Priority(n, nodes)
				if p < lowest || p > highest || seen[p] {
					t.Fatalf("group %d: priority %d of %s", g.Number, p, n)
				}
				seen[p] = true
			}
		}
	})
}

// TestOwnersSpread: 200 groups over 5 nodes.
func TestOwnersSpread(t *testing.T) {
	nodes := []string{"node-a", "node-b", "node-c", "node-d", "node-e"}
	owns := map[string]int{}
	for number := range 200 {
		g := &Group{Number: uint8(number + 1)}
		for _, n := range nodes {
			if g.Priority(n, nodes) == highest {
				owns[n]++
			}
		}
	}
	for _, n := range nodes {
		if owns[n] < 20 || owns[n] > 60 {
			t.Errorf("groups of nodes: %v", owns)
		}
	}
	g := &Group{Number: 1, Nodes: []string{"node-b"}}
	if g.Priority("node-a", nodes) != 0 || g.Priority("node-b", nodes) != highest || g.Priority("node-b", nodes[:1]) != 0 {
		t.Error("a Local group belongs to its nodes that are candidates")
	}
}
