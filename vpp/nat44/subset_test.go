package nat44

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
)

// chosen returns the backends that a node gives a place to.
func chosen(node string, backends ...string) map[netip.Addr]bool {
	cfg := testConfig
	cfg.Node = node
	view := &messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{serving("10.96.0.1", 80, tcp, backends...)}}
	got := map[netip.Addr]bool{}
	for _, l := range Plan(view, cfg).Rows[0].Locals {
		got[l.Addr] = true
	}
	return got
}

// missing counts the elements of a that are not in b.
func missing(a, b map[netip.Addr]bool) (n int) {
	for addr := range a {
		if !b[addr] {
			n++
		}
	}
	return n
}

func TestSubsetIsStable(t *testing.T) {
	all := endpoints(600)
	before := chosen("n1", all...)
	for i := 0; i < len(all); i += 7 {
		without := append(append([]string{}, all[:i]...), all[i+1:]...)
		after := chosen("n1", without...)
		if n := missing(before, after); n > 1 {
			t.Fatalf("without %s, %d backends have changed", all[i], n)
		}
		if addr := netip.MustParseAddrPort(all[i]).Addr(); before[addr] != (missing(before, after) == 1) {
			t.Fatalf("without %s: it was chosen: %v, %d have changed", all[i], before[addr], missing(before, after))
		}
	}
}

// TestSubsetDiffersBetweenNodes: a node serves 127 of 600 backends, so that 20 nodes leave out each
// one with a probability of 0.9 percent, 595 are expected to be served. Rows of 253, as they were
// with two pads, needed half as many nodes.
func TestSubsetDiffersBetweenNodes(t *testing.T) {
	all := endpoints(600)
	served := map[netip.Addr]bool{}
	for n := range 20 {
		for addr := range chosen(fmt.Sprint("n", n), all...) {
			served[addr] = true
		}
	}
	if len(served) < 580 {
		t.Errorf("20 nodes serve %d of 600 backends", len(served))
	}
}

func TestSubsetPrefersLocal(t *testing.T) {
	all := endpoints(600)
	for i := 0; i < 100; i++ {
		all[i*3] += "*"
	}
	got := chosen("n1", all...)
	for i := 0; i < 100; i++ {
		if addr := netip.MustParseAddrPort(all[i*3][:len(all[i*3])-1]).Addr(); !got[addr] {
			t.Fatalf("the local backend %s has no place", addr)
		}
	}
	if len(got) != MaxBackends {
		t.Errorf("%d backends, want %d", len(got), MaxBackends)
	}
}

// obviousSubset chooses by the description: sorted by place, hash and endpoint, the first ones.
func obviousSubset(node string, from []*messages.Backend) []Local {
	type candidate struct {
		Local
		remote bool
		rank   uint64
	}
	var all []candidate
	for _, b := range from {
		c := candidate{Local: Local{Addr: netip.MustParseAddr(b.GetAddress()), Port: uint16(b.GetPort())}, remote: !b.GetLocal()}
		h := fnv.New64a()
		addr := c.Addr.As4()
		_, _ = h.Write(append(append([]byte(node), addr[:]...), byte(c.Port>>8), byte(c.Port)))
		c.rank = h.Sum64()
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		switch {
		case a.remote != b.remote && b.remote:
			return -1
		case a.remote != b.remote:
			return 1
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), compareEndpoint(a.Local, b.Local))
	})
	var kept []Local
	for _, c := range all[:min(len(all), MaxBackends)] {
		kept = append(kept, c.Local)
	}
	slices.SortFunc(kept, compareEndpoint)
	for i := range kept {
		kept[i].Weight = Weight(len(kept))
	}
	return kept
}

// TestSubsetLikeTheObvious: over lists of any length, with none, some or all of the backends on
// this node.
func TestSubsetLikeTheObvious(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfNDistinct(rapid.IntRange(0, 2000), 1, 800, rapid.ID[int]).Draw(t, "hosts")
		here := rapid.IntRange(0, len(hosts)).Draw(t, "here")
		var from []*messages.Backend
		for i, host := range hosts {
			from = append(from, &messages.Backend{Address: fmt.Sprintf("10.%d.1.%d", host>>8, host&255), Port: uint32(1000 + i%3), Local: i < here})
		}
		node := rapid.SampledFrom([]string{"", "n1", "node-with-a-longer-name"}).Draw(t, "node")
		if d := diff(obviousSubset(node, from), choose(node, from, forwarding.Tables{}).locals); d != "" {
			t.Fatalf("of %d, %d here (-want +got):\n%s", len(hosts), here, d)
		}
	})
}

// TestBackendsHaveTheirTables: each backend is in the table in which it is reached; draining ones
// keep what VPP holds.
func TestBackendsHaveTheirTables(t *testing.T) {
	f := serving("10.96.0.1", 80, messages.Protocol_TCP, "10.1.1.2:80*", "10.1.128.2:80", "192.168.50.9:80")
	f.Draining = []*messages.Backend{{Address: "10.1.1.3", Port: 80}}
	plan := Plan(&messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{f}}, Config{Tables: forwarding.NewTables([]forwarding.Network{
		{Prefix: netip.MustParsePrefix("10.1.0.0/17"), Table: 2}, {Prefix: netip.MustParsePrefix("10.1.128.0/17"), Table: 5},
	})})
	var got []string
	for _, l := range slices.Concat(plan.Rows[0].Locals, plan.Rows[0].Draining) {
		got = append(got, l.Text())
	}
	check(t, "backends", []string{"10.1.1.2:80 (table 2)", "10.1.128.2:80 (table 5)", "192.168.50.9:80", "10.1.1.3:80"}, got)
}
