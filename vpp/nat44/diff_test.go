package nat44

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

var loopback = netip.MustParseAddr("10.1.1.254")

// settled returns a state and a want that agree.
func settled(rows ...Row) (*State, *Want) {
	want := &Want{
		Globals:    Globals{SessionLimit: 100000, Timeouts: DefaultTimeouts(), TwiceNAT: loopback},
		Rows:       byKey(rows...),
		Interfaces: map[uint32]bool{1: true, 2: true},
	}
	have := NewState()
	have.Enabled, have.Sessions, have.Forwarding, have.Timeouts = true, 100000, true, DefaultTimeouts()
	have.TwiceNAT = []netip.Addr{loopback}
	have.Roles = map[uint32]Roles{1: Both, 2: Both}
	have.Rows = byKey(rows...)
	return have, want
}

func TestDiffFresh(t *testing.T) {
	_, want := settled(newRow("10.96.0.2:80/TCP", "10.1.1.1:80"), newRow("10.96.0.1:80/TCP", "10.1.1.1:80"))
	check(t, "operations", []string{
		"enable NAT44 for 100001 sessions",
		"enable forwarding",
		"set timeouts udp=60 tcp-established=7440 tcp-transitory=240 icmp=60",
		"add twice-NAT address 10.1.1.254",
		"add roles inside+outside to interface 1",
		"add roles inside+outside to interface 2",
		"add row 10.96.0.1:80/TCP out2in-only,self-twice-nat -> 1 backends",
		"add row 10.96.0.2:80/TCP out2in-only,self-twice-nat -> 1 backends",
	}, describe(Diff(NewState(), want, false)))
}

func TestDiff(t *testing.T) {
	web, dns := newRow("10.96.0.1:80/TCP", "10.1.1.1:80"), newRow("10.96.0.10:53/UDP", "10.1.1.2:53")
	other := netip.MustParseAddr("10.1.1.253")
	for _, c := range []struct {
		name   string
		change func(have *State, want *Want)
		sweep  bool
		ops    []string
	}{
		{"settled", func(*State, *Want) {}, true, nil},
		{"no forwarding", func(have *State, _ *Want) { have.Forwarding = false }, true, []string{"enable forwarding"}},
		{"timeouts", func(have *State, _ *Want) { have.Timeouts.UDP = 300 }, true, []string{
			"set timeouts udp=60 tcp-established=7440 tcp-transitory=240 icmp=60",
		}},
		{"timeouts not configured", func(_ *State, want *Want) { want.Timeouts = Timeouts{} }, true, nil},
		{"fewer sessions, which is a matter of housekeeping", func(have *State, _ *Want) { have.Sessions = 64512 }, true, nil},
		{"more sessions", func(have *State, _ *Want) { have.Sessions = 200000 }, true, nil},
		{"sessions not configured", func(_ *State, want *Want) { want.SessionLimit = 0 }, true, nil},
		{"no twice-NAT address wanted", func(_ *State, want *Want) { want.TwiceNAT = netip.Addr{} }, true, nil},
		{"twice-NAT address of another client", func(have *State, _ *Want) { have.TwiceNAT = append(have.TwiceNAT, other) }, true, nil},
		{"other twice-NAT address", func(have *State, want *Want) {
			want.TwiceNAT, want.Retired = other, []netip.Addr{loopback, other, netip.MustParseAddr("10.9.9.9"), loopback}
		}, false, []string{"add twice-NAT address 10.1.1.253", "delete twice-NAT address 10.1.1.254"}},
		{"new interface", func(_ *State, want *Want) { want.Interfaces[7] = true }, true, []string{"add roles inside+outside to interface 7"}},
		{"half an interface", func(have *State, _ *Want) { have.Roles[2] = Outside }, true, []string{"add roles inside to interface 2"}},
		{"output interface", func(have *State, want *Want) { want.Interfaces[7], have.Output[7] = true, true }, true, nil},
		{"interface of another client", func(have *State, _ *Want) { have.Roles[9] = Both }, true, nil},
		{"inside interface of another client", func(have *State, _ *Want) { have.Roles[9] = Inside }, true, []string{"add roles outside to interface 9"}},
		{"interface without clients, and a new row", func(have *State, want *Want) {
			want.Interfaces[2] = false
			want.Rows[mustKey("10.96.0.3:80/TCP")] = newRow("10.96.0.3:80/TCP", "10.1.1.1:80")
		}, true, []string{
			"add row 10.96.0.3:80/TCP out2in-only,self-twice-nat -> 1 backends",
			"delete roles inside+outside from interface 2",
		}},
		{"inside interface without clients, and a new row", func(have *State, want *Want) {
			want.Interfaces[2], have.Roles[2] = false, Inside
			want.Rows[mustKey("10.96.0.3:80/TCP")] = newRow("10.96.0.3:80/TCP", "10.1.1.1:80")
		}, true, []string{
			"delete roles inside from interface 2",
			"add row 10.96.0.3:80/TCP out2in-only,self-twice-nat -> 1 backends",
		}},
		{"interface without clients and roles", func(_ *State, want *Want) { want.Interfaces[5] = false }, true, nil},
		{"unwanted row, no sweep", func(_ *State, want *Want) { delete(want.Rows, web.Key) }, false, nil},
		{"unwanted row, sweep", func(_ *State, want *Want) { delete(want.Rows, web.Key) }, true, []string{"delete row 10.96.0.1:80/TCP"}},
		{"row without backends, no sweep", func(_ *State, want *Want) { want.Rows[web.Key] = newRow("10.96.0.1:80/TCP") }, false, nil},
		{"additions before deletions", func(have *State, want *Want) {
			delete(want.Rows, web.Key)
			delete(have.Rows, dns.Key)
		}, true, []string{"add row 10.96.0.10:53/UDP out2in-only,self-twice-nat -> 1 backends", "delete row 10.96.0.1:80/TCP"}},
		{"key of another client", func(have *State, _ *Want) {
			delete(have.Rows, web.Key)
			have.Foreign[web.Key] = "static mapping"
		}, true, nil},
		{"foreign rows", func(have *State, _ *Want) { have.Foreign[mustKey("10.96.0.7:80/TCP")] = "load-balancing mapping" }, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, want := settled(web, dns)
			c.change(have, want)
			check(t, "operations", c.ops, describe(Diff(have, want, c.sweep)))
		})
	}
}

func TestDiffGlobalsLeavesRows(t *testing.T) {
	have, want := settled(newRow("10.96.0.1:80/TCP", "10.1.1.1:80"))
	have.Rows, want.Interfaces[2] = map[rule.Key]Row{}, false
	check(t, "operations", []string{"delete roles inside+outside from interface 2"}, describe(DiffGlobals(have, want)))
}
