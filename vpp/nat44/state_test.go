package nat44

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// TestRecord: the state after every single operation.
func TestRecord(t *testing.T) {
	const vip = "10.96.0.1:80/TCP"
	row := newRow(vip, "10.1.1.1:80")
	s := NewState()
	s.Pool, s.Roles[9] = []netip.Addr{loopback}, Inside
	for _, step := range []struct {
		op   Op
		look func() any
		want any
	}{
		{Op{Verb: Enable}, func() any { return []any{s.Enabled, s.Sessions, s.Forwarding, s.Timeouts, len(s.Pool), len(s.Roles)} }, []any{true, uint32(64512), false, vppTimeouts(), 0, 0}},
		{Op{Verb: Forwarding}, func() any { return s.Forwarding }, true},
		{Op{Verb: SetTimeouts, Timeouts: Timeouts{1, 2, 3, 4}}, func() any { return s.Timeouts }, Timeouts{1, 2, 3, 4}},
		{Op{Verb: AddAddress, Addr: loopback}, func() any { return s.TwiceNAT }, []netip.Addr{loopback}},
		{Op{Verb: AddAddress, Addr: loopback}, func() any { return s.TwiceNAT }, []netip.Addr{loopback}},
		{Op{Verb: DelAddress, Addr: loopback}, func() any { return len(s.TwiceNAT) }, 0},
		{Op{Verb: AddRoles, Interface: 1, Roles: Outside}, func() any { return s.Roles[1] }, Outside},
		{Op{Verb: AddRoles, Interface: 1, Roles: Inside}, func() any { return s.Roles[1] }, Both},
		{Op{Verb: DelRoles, Interface: 1, Roles: Inside}, func() any { return s.Roles[1] }, Outside},
		{Op{Verb: DelRoles, Interface: 1, Roles: Outside}, func() any { return len(s.Roles) }, 0},
		{Op{Verb: AddRow, Key: row.Key, Row: &row}, func() any { return s.Rows }, byKey(row)},
		{Op{Verb: AddLocal, Key: row.Key, Local: locals("10.1.1.0:80")[0]}, func() any { return s.Rows }, byKey(newRow(vip, "10.1.1.0:80", "10.1.1.1:80"))},
		{Op{Verb: DelLocal, Key: row.Key, Local: locals("10.1.1.1:80")[0]}, func() any { return s.Rows }, byKey(newRow(vip, "10.1.1.0:80"))},
		{Op{Verb: DelRow, Key: row.Key, Row: &row}, func() any { return len(s.Rows) }, 0},
		{Op{Verb: AddLocal, Key: row.Key, Local: locals("10.1.1.0:80")[0]}, func() any { return len(s.Rows) }, 0},
	} {
		before := s.Clone()
		s.Record(step.op)
		check(t, step.op.String(), step.want, step.look())
		before.Record(step.op)
		check(t, step.op.String()+" on a clone", s, before)
	}
	check(t, "the row that was added", newRow(vip, "10.1.1.1:80"), row)
}

func TestClone(t *testing.T) {
	s, _ := settled(newRow("10.96.0.1:80/TCP", "10.1.1.1:80"))
	c := s.Clone()
	check(t, "clone", s, c)
	c.Rows[mustKey("10.96.0.2:80/TCP")], c.Roles[7], c.Output[7], c.Foreign[rule.Key{}] = Row{}, Both, true, "x"
	c.TwiceNAT[0] = netip.Addr{}
	again, _ := settled(newRow("10.96.0.1:80/TCP", "10.1.1.1:80"))
	check(t, "original", again, s)
}

// TestInterfaces: with roles, as output interfaces, or both.
func TestInterfaces(t *testing.T) {
	for _, c := range []struct {
		name   string
		roles  map[uint32]Roles
		output map[uint32]bool
		want   []uint32
	}{
		{"none", nil, nil, nil},
		{"roles", map[uint32]Roles{1: Both, 2: Outside}, nil, []uint32{1, 2}},
		{"output", nil, map[uint32]bool{3: true}, []uint32{3}},
		{"roles and output", map[uint32]Roles{2: Inside}, map[uint32]bool{1: true}, []uint32{1, 2}},
	} {
		s := &State{Roles: c.roles, Output: c.output}
		check(t, c.name, c.want, slices.Sorted(slices.Values(s.Interfaces())))
	}
}

// TestLose: a deleted interface has nothing any more, the others keep what they have, and it has to
// get its roles again.
func TestLose(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80")
	for _, c := range []struct {
		name   string
		lost   uint32
		roles  map[uint32]Roles
		output map[uint32]bool
		needed []string
	}{
		{"with roles", 1, map[uint32]Roles{2: Both}, map[uint32]bool{7: true}, []string{"add roles inside+outside to interface 1"}},
		{"an output interface", 7, map[uint32]Roles{1: Both, 2: Both}, map[uint32]bool{}, nil},
		{"without roles", 9, map[uint32]Roles{1: Both, 2: Both}, map[uint32]bool{7: true}, nil},
	} {
		s, want := settled(row)
		s.Output[7] = true
		s.Lose(c.lost)
		check(t, c.name+": roles", c.roles, s.Roles)
		check(t, c.name+": output interfaces", c.output, s.Output)
		check(t, c.name+": rows", byKey(row), s.Rows)
		check(t, c.name+": needed", c.needed, describe(Diff(s, want, false)))
	}
}

func TestTimeouts(t *testing.T) {
	check(t, "defaults", DefaultTimeouts(), Timeouts{}.withDefaults())
	check(t, "some", Timeouts{UDP: 30, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 5}, Timeouts{UDP: 30, ICMP: 5}.withDefaults())
	cfg := Config{TwiceNAT: loopback, SessionLimit: 7, Timeouts: Timeouts{UDP: 30}}
	check(t, "globals", Globals{
		SessionLimit: 7, TwiceNAT: loopback, Timeouts: Timeouts{UDP: 30, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 60},
	}, cfg.Globals())
}
