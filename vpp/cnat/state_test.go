package cnat

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// TestUnsure: VPP does not show whether an address is one of its own. After a start of the agent
// the row stays as it is, also if its service renders after the reading.
func TestUnsure(t *testing.T) {
	key := rule.Key{Addr: netip.MustParseAddr("2001:db8::53"), Port: 53, Proto: rule.UDP}
	wanted := Row{Key: key, RealIP: true, Backends: []netip.AddrPort{netip.MustParseAddrPort("[fd00::1]:53")}}
	shown := wanted
	shown.RealIP = false
	for _, tt := range []struct {
		name     string
		rendered bool // the service, before the reading
	}{
		{"rendered before", true},
		{"rendered after", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewState()
			s.Rows[key] = Held{Row: shown, ID: 7, Ours: true}
			s.Inherit(nil, func(rule.Key) *Row {
				if tt.rendered {
					return &wanted
				}
				return nil
			})
			s.Settle(key, &wanted)
			held := s.Rows[key]
			if ops := DiffRow(&held, &wanted); len(ops) != 0 {
				t.Errorf("operations: %v", ops)
			}
			ordinary := wanted
			ordinary.RealIP = false
			if s.Settle(key, &ordinary); s.Rows[key].RealIP != held.RealIP {
				t.Error("the second row decided")
			}
		})
	}
}

// TestUnsureRowHasNotDrifted: a service that tells whether an address is one of VPP's own changes
// nothing in VPP; a service with another backend does.
func TestUnsureRowHasNotDrifted(t *testing.T) {
	key := rule.Key{Addr: netip.MustParseAddr("2001:db8::53"), Port: 53, Proto: rule.UDP}
	shown := Held{Row: Row{Key: key, Backends: []netip.AddrPort{netip.MustParseAddrPort("[fd00::1]:53")}}, ID: 7, Ours: true, Unsure: true}
	told := shown
	told.RealIP, told.Unsure = true, false
	other := told
	other.Backends = []netip.AddrPort{netip.MustParseAddrPort("[fd00::2]:53")}
	sure := shown
	sure.Unsure = false
	for _, tt := range []struct {
		name          string
		before, after Held
		same          bool
	}{
		{"told meanwhile", shown, told, true},
		{"told, and with another backend", shown, other, false},
		{"known to be another kind of address", sure, told, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.before.Same(tt.after); got != tt.same {
				t.Errorf("the same: %v", got)
			}
		})
	}
}
