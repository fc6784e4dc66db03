package contract

import (
	"testing"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

var staticCases = []contractCase{
	{"static/add, again, delete, again", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, static())
		v.expect(t, valueExist, static())
		other := static()
		other.LocalIPAddress = [4]byte{10, 1, 1, 2}
		v.expect(t, valueExist, other)
		check(t, "mappings", []*nat44_ed.Nat44StaticMappingDetails{{
			Flags: out2in, LocalIPAddress: [4]byte{10, 1, 1, 1}, LocalPort: 8080, ExternalIPAddress: vip, ExternalPort: 80,
			Protocol: rule.TCP, ExternalSwIfIndex: none, Tag: "simple",
		}}, dump[*nat44_ed.Nat44StaticMappingDetails](t, v, &nat44_ed.Nat44StaticMappingDump{}))
		v.expect(t, ok, noStatic())
		v.expect(t, noSuchEntry, noStatic())
	}},
	{"static/is not a row and the reverse", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, static())
		v.expect(t, valueExist, row(local(1), local(2)))
		v.expect(t, invalidValue, noRow())
		check(t, "rows", nil, rows(t, v))
		v.expect(t, ok, noStatic())
		v.expect(t, ok, row(local(1), local(2)))
		v.expect(t, valueExist, static())
		check(t, "mappings", nil, dump[*nat44_ed.Nat44StaticMappingDetails](t, v, &nat44_ed.Nat44StaticMappingDump{}))
	}},
	{"static/deleting a row as a simple mapping changes nothing", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		v.expect(t, ok, noStatic())
		check(t, "backends", []byte{1, 2}, hosts(onlyRow(t, v)))
	}},
	{"static/identity", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, identity())
		v.expect(t, valueExist, row(local(1), local(2)))
		all := dump[*nat44_ed.Nat44IdentityMappingDetails](t, v, &nat44_ed.Nat44IdentityMappingDump{})
		if len(all) != 1 || all[0].IPAddress != vip || all[0].Port != 80 || all[0].Protocol != rule.TCP || all[0].Tag != "exempt" {
			t.Fatalf("mappings %+v", all)
		}
		remove := identity()
		remove.IsAdd = false
		v.expect(t, ok, remove)
		v.expect(t, noSuchEntry, remove)
		v.expect(t, ok, row(local(1), local(2)))
	}},
	{"static/a whole address leaves its ports to rows", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		whole := static()
		whole.Flags, whole.LocalPort, whole.ExternalPort, whole.Protocol = out2in|nat_types.NAT_IS_ADDR_ONLY, 0, 0, 0
		v.expect(t, ok, whole)
		v.expect(t, ok, row(local(1), local(2)))
		state := v.read(t)
		address := rule.Key{Addr: key(t, "10.96.0.1:80/TCP").Addr}
		if len(state.Foreign) != 2 || state.Foreign[key(t, "10.96.0.1:80/TCP")] == "" || state.Foreign[address] == "" {
			t.Errorf("foreign %v", state.Foreign)
		}
	}},
	{"static/foreign mappings as the agent sees them", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, static())
		exempt := identity()
		exempt.Port = 4789
		v.expect(t, ok, exempt)
		foreign := row(local(1), local(2))
		foreign.ExternalPort = 90
		v.expect(t, ok, foreign)
		state := v.read(t)
		check(t, "foreign", map[rule.Key]string{
			key(t, "10.96.0.1:80/TCP"):   `static mapping "simple"`,
			key(t, "10.96.0.1:4789/TCP"): `identity mapping "exempt"`,
			key(t, "10.96.0.1:90/TCP"):   `load-balancing mapping "other client"`,
		}, state.Foreign)
		check(t, "ours", map[rule.Key]nat44.Row{}, state.Rows)
	}},
}

// addresses returns the pools as VPP dumps them.
func addresses(t testing.TB, v *rig) []*nat44_ed.Nat44AddressDetails {
	t.Helper()
	return dump[*nat44_ed.Nat44AddressDetails](t, v, &nat44_ed.Nat44AddressDump{})
}

var addressCases = []contractCase{
	{"address/twice-NAT", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, twiceNAT(vip, vip))
		v.expect(t, valueExist, twiceNAT(vip, vip))
		check(t, "addresses", []*nat44_ed.Nat44AddressDetails{{IPAddress: vip, Flags: nat_types.NAT_IS_TWICE_NAT, VrfID: ^uint32(0)}}, addresses(t, v))
		remove := twiceNAT(vip, vip)
		remove.IsAdd = false
		v.expect(t, ok, remove)
		v.expect(t, noSuchEntry, remove)
		check(t, "addresses", nil, addresses(t, v))
	}},
	{"address/both pools", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		pool := twiceNAT(vip, vip)
		pool.Flags = 0
		v.expect(t, ok, twiceNAT(vip, vip))
		v.expect(t, ok, pool)
		v.expect(t, valueExist, pool)
		check(t, "addresses", []*nat44_ed.Nat44AddressDetails{
			{IPAddress: vip, VrfID: ^uint32(0)}, {IPAddress: vip, Flags: nat_types.NAT_IS_TWICE_NAT, VrfID: ^uint32(0)},
		}, addresses(t, v))
		state := v.read(t)
		if len(state.Pool) != 1 || len(state.TwiceNAT) != 1 {
			t.Errorf("pools %v and %v", state.Pool, state.TwiceNAT)
		}
	}},
	{"address/a range stops at the first error", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, twiceNAT([4]byte{10, 0, 0, 2}, [4]byte{10, 0, 0, 2}))
		v.expect(t, valueExist, twiceNAT([4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 3}))
		if n := len(addresses(t, v)); n != 2 {
			t.Errorf("%d addresses", n)
		}
	}},
}

// roles returns the interfaces with roles, by index.
func roles(t testing.TB, v *rig) map[interface_types.InterfaceIndex]nat_types.NatConfigFlags {
	t.Helper()
	all := map[interface_types.InterfaceIndex]nat_types.NatConfigFlags{}
	for _, d := range dump[*nat44_ed.Nat44InterfaceDetails](t, v, &nat44_ed.Nat44InterfaceDump{}) {
		if _, twice := all[d.SwIfIndex]; twice {
			t.Errorf("interface %d is dumped twice", d.SwIfIndex)
		}
		all[d.SwIfIndex] = d.Flags
	}
	return all
}

// flags is a short name.
type flags = map[interface_types.InterfaceIndex]nat_types.NatConfigFlags

var roleCases = []contractCase{
	{"role/add and delete", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		a, b := loopback(t, v), loopback(t, v)
		v.expect(t, ok, role(true, a, outside))
		v.expect(t, ok, role(true, a, outside))
		check(t, "roles", flags{a: outside}, roles(t, v))
		v.expect(t, ok, role(true, a, inside))
		v.expect(t, ok, role(true, a, inside))
		v.expect(t, ok, role(true, b, inside))
		check(t, "roles", flags{a: inside | outside, b: inside}, roles(t, v))
		v.expect(t, ok, role(false, a, inside))
		check(t, "roles", flags{a: outside, b: inside}, roles(t, v))
		v.expect(t, ok, role(false, a, outside))
		v.expect(t, noSuchEntry, role(false, a, outside))
		check(t, "roles", flags{b: inside}, roles(t, v))
	}},
	{"role/no such interface", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, noInterface, role(true, 99, inside))
		v.expect(t, noInterface, role(false, 99, inside))
		v.expect(t, noInterface, output(true, 99))
	}},
	{"role/deleting a role that is not there deletes the other", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		index := loopback(t, v)
		v.expect(t, ok, role(true, index, inside))
		v.expect(t, ok, role(false, index, outside))
		check(t, "roles", flags{}, roles(t, v))
	}},
	{"role/output interface excludes roles", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		a, b := loopback(t, v), loopback(t, v)
		v.expect(t, ok, output(true, a))
		v.expect(t, valueExist, output(true, a))
		v.expect(t, valueExist, role(true, a, inside))
		v.expect(t, noSuchEntry, role(false, a, inside))
		v.expect(t, ok, role(true, b, inside))
		v.expect(t, valueExist, output(true, b))
		v.expect(t, noSuchEntry, output(false, b))
		all := dump[*nat44_ed.Nat44EdOutputInterfaceDetails](t, v, &nat44_ed.Nat44EdOutputInterfaceGet{})
		if len(all) != 1 || all[0].SwIfIndex != a {
			t.Errorf("output interfaces %+v", all)
		}
		check(t, "output interfaces as the agent sees them", map[uint32]bool{uint32(a): true}, v.read(t).Output)
		v.expect(t, ok, output(false, a))
		check(t, "output interfaces as the agent sees them", map[uint32]bool{}, v.read(t).Output)
	}},
	{"role/many output interfaces", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		want := map[uint32]bool{}
		for range 20 {
			index := loopback(t, v)
			v.expect(t, ok, output(true, index))
			want[uint32(index)] = true
		}
		check(t, "output interfaces", want, v.read(t).Output)
	}},
	{"role/goes with its interface", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		index := loopback(t, v)
		v.expect(t, ok, role(true, index, outside))
		v.expect(t, ok, role(true, index, inside))
		deleteLoopback(t, v, index)
		check(t, "roles", flags{}, roles(t, v))
		v.expect(t, noInterface, role(false, index, inside))
	}},
}
