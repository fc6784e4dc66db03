package cnat

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// row makes a translation of a VIP's port 80.
func row(vip string, hash uint32, backend string) *Translation {
	return &Translation{
		Key:  Key{VIP: Endpoint{Addr: netip.MustParseAddr(vip), Port: 80}, Proto: 6},
		Hash: hash, RealIP: uint8(hash), Flags: uint8(hash), LBType: uint8(hash),
		Paths: []Path{{Dst: Endpoint{Addr: netip.MustParseAddr(backend), Port: 8080}}},
	}
}

// TestUpdateKeepsWhatOnlyAddingSets: no dump shows these fields, so the contract cannot test them.
func TestUpdateKeepsWhatOnlyAddingSets(t *testing.T) {
	p := NewPlugin(vnet.NewNetwork(time.Now))
	id := p.Update(row("fd00:96::1", 1, "fd00:1::1"))
	if again := p.Update(row("fd00:96::1", 0, "fd00:1::2")); again != id {
		t.Errorf("id %d, want %d", again, id)
	}
	got, _ := p.Translations.Get(id)
	if got.Hash != 1 || got.RealIP != 1 || got.LBType != 1 || got.Flags != 0 || got.Paths[0].Dst.Addr != netip.MustParseAddr("fd00:1::2") {
		t.Errorf("%+v", got)
	}
}

// TestDescribe: the state that no message reads.
func TestDescribe(t *testing.T) {
	p := NewPlugin(vnet.NewNetwork(time.Now))
	if lines := p.Describe(nil); len(lines) > 0 {
		t.Errorf("after the start: %q", lines)
	}
	p.Update(row("fd00:96::1", 1, "fd00:1::1"))
	p.SNAT.IP6 = netip.MustParseAddr("fd00::1")
	for _, retval := range []int32{
		p.SNAT.SetPolicy(2),
		p.SNAT.SetInterface(InterfaceTable{SwIf: 3, Table: 2}, true),
		p.SNAT.Exclude(netip.MustParsePrefix("fd00:96::7/112"), true),
	} {
		if retval != vnet.RetOK {
			t.Errorf("retval %d", retval)
		}
	}
	want := []string{
		"translation 0: fd00:96::1 port 80 proto 6 lb 1 real 1 flags 1 hash 1",
		"translation 0 path 0: fd00:1::1 port 8080 flags 1",
		"snat policy 2 addresses 0.0.0.0 fd00::1",
		"snat table 2: loop3",
		"snat excludes fd00:96::/112",
	}
	if got := p.Describe(func(uint32) string { return "loop3" }); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
