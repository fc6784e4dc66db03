package nat44

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// chosen returns the backends that a node gives a place to.
func chosen(node string, backends ...string) map[netip.Addr]bool {
	cfg := testConfig
	cfg.Node = node
	view := &messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{frontend("10.96.0.1", 80, tcp, backends...)}}
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

func TestSubsetDiffersBetweenNodes(t *testing.T) {
	all := endpoints(600)
	served := map[netip.Addr]bool{}
	for _, node := range []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10"} {
		for addr := range chosen(node, all...) {
			served[addr] = true
		}
	}
	if len(served) < 580 {
		t.Errorf("ten nodes serve %d of 600 backends", len(served))
	}
}

func TestSubsetPrefersLocal(t *testing.T) {
	all := endpoints(600)
	for i := 0; i < 200; i++ {
		all[i*3] += "*"
	}
	got := chosen("n1", all...)
	for i := 0; i < 200; i++ {
		if addr := netip.MustParseAddrPort(all[i*3][:len(all[i*3])-1]).Addr(); !got[addr] {
			t.Fatalf("the local backend %s has no place", addr)
		}
	}
	if len(got) != MaxBackends {
		t.Errorf("%d backends, want %d", len(got), MaxBackends)
	}
}
