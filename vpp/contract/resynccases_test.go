package contract

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// service makes a small complete want: two interfaces, a twice-NAT address and rows.
func service(t testing.TB, v *rig, rows ...nat44.Row) *nat44.Want {
	t.Helper()
	want := &nat44.Want{
		Globals: nat44.Config{SessionLimit: 4096, TwiceNAT: netip.MustParseAddr("10.1.1.254")}.Globals(),
		Rows:    map[rule.Key]nat44.Row{}, Interfaces: map[uint32]bool{},
	}
	for range 2 {
		want.Interfaces[uint32(loopback(t, v))] = true
	}
	for _, r := range rows {
		want.Rows[r.Key] = r
	}
	return want
}

// verbs returns what operations do.
func verbs(ops []nat44.Op) []string {
	var all []string
	for _, op := range ops {
		all = append(all, op.Verb.String())
	}
	return all
}

var resyncCases = []contractCase{
	{"resync/from nothing, then nothing", func(t *testing.T, v *rig) {
		affine := wanted(t, "10.96.0.2:53/UDP", 3)
		affine.Affinity = 10800
		affine.Tag = nat44.Tag{Hash: nat44.ServiceHash("default/dns"), Affinity: 10800}.String()
		want := service(t, v, wanted(t, "10.96.0.1:80/TCP", 1), affine)
		check(t, "operations", v.first(t,
			"enable", "enable-forwarding", "set-timeouts", "add-twice-nat-address", "add-roles", "add-roles", "add-row", "add-row",
		), verbs(v.settle(t, want)))
		check(t, "operations of the second time", nil, verbs(v.settle(t, want)))
		state := v.read(t)
		for k, r := range want.Rows {
			if !state.Rows[k].Equal(r) {
				t.Errorf("row %s is read as %+v", k, state.Rows[k])
			}
		}
	}},
	{"resync/every change of a row", func(t *testing.T, v *rig) {
		web := "10.96.0.1:80/TCP"
		want := service(t, v, wanted(t, web, 1), wanted(t, "10.96.0.9:80/TCP", 2))
		v.settle(t, want)
		change := func(r nat44.Row, operations ...string) {
			t.Helper()
			want.Rows[r.Key] = r
			check(t, "operations", operations, verbs(v.settle(t, want)))
		}
		change(wanted(t, web, 2), "add-local")
		change(wanted(t, web, 4), "grow-row", "add-local", "add-local")
		change(wanted(t, web, 1), "delete-local", "delete-local", "delete-local")
		other := wanted(t, web, 3)
		other.Locals = other.Locals[1:]
		change(other, "add-local", "add-local", "delete-local")
		change(wanted(t, web, 40), slices.Concat([]string{"grow-row", "set-share", "set-share"}, slices.Repeat([]string{"add-local"}, 38))...)
		twice := wanted(t, web, 40)
		twice.Flags = nat44.Out2InOnly | nat44.TwiceNAT
		change(twice, "delete-row", "add-row")
		change(wanted(t, web, 40), "delete-row", "add-row")
		change(wanted(t, web, 0), "delete-row")
		change(wanted(t, web, 1), "add-row")
	}},
	{"resync/full row exchanged", func(t *testing.T, v *rig) {
		full := wanted(t, "10.96.0.1:80/TCP", nat44.MaxBackends)
		want := service(t, v, full)
		v.settle(t, want)
		other := wanted(t, "10.96.0.1:80/TCP", nat44.MaxBackends)
		for i := range other.Locals {
			other.Locals[i].Port = 9090
		}
		want.Rows[other.Key] = other
		if ops := v.settle(t, want); len(ops) != nat44.MaxBackends {
			t.Errorf("%d operations", len(ops))
		}
	}},
	{"resync/without pads", func(t *testing.T, v *rig) {
		bare := func(n int) nat44.Row {
			r := wanted(t, "10.96.0.1:80/TCP", n)
			r.Pads = false
			return r
		}
		want := service(t, v, bare(1))
		v.settle(t, want)
		for n, operations := range map[int][]string{3: {"delete-row", "add-row"}, 2: {"delete-row", "add-row"}} {
			want.Rows[bare(1).Key] = bare(n)
			check(t, "operations", operations, verbs(v.settle(t, want)))
			want.Rows[bare(1).Key] = bare(1)
			check(t, "operations", []string{"delete-row", "add-row"}, verbs(v.settle(t, want)))
		}
	}},
	{"resync/after a restart every row once", func(t *testing.T, v *rig) {
		web, dns := wanted(t, "10.96.0.1:80/TCP", 3), wanted(t, "10.96.0.2:53/UDP", 1)
		want := service(t, v, web, dns)
		v.settle(t, want)
		boot := v.boot
		v.Crash(t)
		v.waitDown(t)
		if results := nat44.Apply(t.Context(), v.link, []nat44.Op{{Verb: nat44.Forwarding}}); !errors.Is(results[0].Err, link.ErrNotSent) {
			t.Errorf("without VPP: %v", results[0].Err)
		}
		v.Restart(t)
		v.waitUp(t)
		if v.boot == boot {
			t.Errorf("two starts of VPP have the same boot identity %q", boot)
		}
		check(t, "state", v.empty(t), v.read(t))
		want.Interfaces = service(t, v).Interfaces
		if sent := v.apply(t, nat44.Diff(v.read(t), want, true)); sent != 4+4+2+len(v.first(t)) {
			t.Errorf("%d messages, want four for the plugin, four roles, two rows, and one for several workers", sent)
		}
		if n := len(rows(t, v)); n != 2 {
			t.Errorf("%d rows", n)
		}
		check(t, "operations left", nil, verbs(v.settle(t, want)))
	}},
	{"resync/foreign rows are left alone", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		before := v.read(t).Timeouts
		want := service(t, v, wanted(t, "10.96.0.1:80/TCP", 3), wanted(t, "10.96.0.2:80/TCP", 3))
		want.SessionLimit = 0
		// Who has enabled NAT44 without forwarding has packets translated that services need as
		// they are.
		check(t, "operations without forwarding", nil, verbs(v.settle(t, want)))
		v.expect(t, ok, &nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
		v.settle(t, want)
		check(t, "timeouts", before, v.read(t).Timeouts)
		for _, d := range rows(t, v) {
			if d.ExternalAddr == vip && (d.Tag != "other client" || len(d.Locals) != 2) {
				t.Errorf("the foreign row is %+v", d)
			}
		}
		v.expect(t, ok, noRow())
		check(t, "operations when it is gone", []string{"set-timeouts", "add-row", "withdraw-address"}, verbs(v.settle(t, want)))
	}},
	{"resync/plugin enabled by another client with fewer sessions", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		want := service(t, v)
		have := v.read(t)
		ops := nat44.Diff(have, want, true)
		check(t, "operations", v.first(t,
			"enable-forwarding", "set-timeouts", "add-twice-nat-address", "add-roles", "add-roles",
		), verbs(ops))
		v.apply(t, ops)
		check(t, "operations when all that is missing are sessions", nil, verbs(nat44.Diff(v.read(t), want, true)))
	}},
	{"resync/drift", func(t *testing.T, v *rig) {
		web, dns := wanted(t, "10.96.0.1:80/TCP", 3), wanted(t, "10.96.0.2:53/UDP", 1)
		want := service(t, v, web, dns)
		v.settle(t, want)
		stale := wanted(t, "10.96.0.7:80/TCP", 2)
		remove := nat44.Op{Verb: nat44.DelRow, Key: dns.Key, Row: &dns}
		v.apply(t, []nat44.Op{{Verb: nat44.AddRow, Key: stale.Key, Row: &stale}, remove, remove})
		v.expect(t, ok, delLocal(nat44_ed.Nat44LbAddrPort{Addr: [4]byte{10, 1, 0, 1}, Port: 8080}))
		v.expect(t, ok, &nat44_ed.Nat44ForwardingEnableDisable{})
		check(t, "operations", []string{"enable-forwarding", "mend-row", "add-local", "add-row", "delete-row"}, verbs(v.settle(t, want)))
	}},
	{"resync/what was done already", func(t *testing.T, v *rig) {
		web := wanted(t, "10.96.0.1:80/TCP", 2)
		want := service(t, v, web)
		v.settle(t, want)
		for _, c := range []struct {
			op  nat44.Op
			err error
		}{
			{nat44.Op{Verb: nat44.Enable, Sessions: 4096}, nil},
			{nat44.Op{Verb: nat44.Forwarding}, nil},
			{nat44.Op{Verb: nat44.AddAddress, Addr: want.TwiceNAT}, nil},
			{nat44.Op{Verb: nat44.AddRow, Key: web.Key, Row: &web}, nat44.ErrExists},
			{nat44.Op{Verb: nat44.AddLocal, Key: web.Key, Local: web.Locals[0], After: nat44.Load{Entries: 4, Weight: 14}}, nat44.ErrExists},
			{nat44.Op{Verb: nat44.AddRoles, Interface: 99, Roles: nat44.Both}, nat44.ErrNoInterface},
			{nat44.Op{Verb: nat44.DelRoles, Interface: 99, Roles: nat44.Both}, nil},
			{nat44.Op{Verb: nat44.DelRow, Key: web.Key, Row: &web}, nil},
			{nat44.Op{Verb: nat44.DelRow, Key: web.Key, Row: &web}, nil},
			{nat44.Op{Verb: nat44.AddLocal, Key: web.Key, Local: web.Locals[0], After: nat44.Load{Entries: 4, Weight: 14}}, nat44.ErrVanished},
			{nat44.Op{Verb: nat44.DelAddress, Addr: want.TwiceNAT}, nil},
			{nat44.Op{Verb: nat44.DelAddress, Addr: want.TwiceNAT}, nil},
		} {
			result := nat44.Apply(t.Context(), v.link, []nat44.Op{c.op})[0]
			if !errors.Is(result.Err, c.err) || (result.Err == nil) != (c.err == nil) {
				t.Errorf("%s: %v, want %v", c.op, result.Err, c.err)
			}
		}
	}},
	{"resync/a thousand rows in one batch", func(t *testing.T, v *rig) {
		want := service(t, v)
		for i := range 1000 {
			r := wanted(t, "10.96.0.1:80/TCP", 5)
			r.Addr = netip.AddrFrom4([4]byte{10, 97, byte(i >> 8), byte(i)})
			want.Rows[r.Key] = r
		}
		v.settle(t, want)
		if n := len(v.read(t).Rows); n != 1000 {
			t.Errorf("%d rows", n)
		}
		want.Rows = nil
		v.settle(t, want)
		check(t, "rows", nil, rows(t, v))
	}},
	{"resync/interface that goes and comes", func(t *testing.T, v *rig) {
		want := service(t, v, wanted(t, "10.96.0.1:80/TCP", 1))
		v.settle(t, want)
		index := loopback(t, v)
		want.Interfaces[uint32(index)] = true
		check(t, "operations", []string{"add-roles"}, verbs(v.settle(t, want)))
		deleteLoopback(t, v, index)
		want.Interfaces[uint32(index)] = false
		check(t, "operations", nil, verbs(v.settle(t, want)))
		if again := loopback(t, v); again != index {
			t.Errorf("a new interface has index %d, want %d again", again, index)
		}
		want.Interfaces[uint32(index)] = true
		check(t, "operations", []string{"add-roles"}, verbs(v.settle(t, want)))
		want.Interfaces[uint32(index)] = false
		check(t, "operations", []string{"delete-roles"}, verbs(v.settle(t, want)))
	}},
	{"resync/in the order of requests", func(t *testing.T, v *rig) {
		var reqs []api.Message
		for range 200 {
			reqs = append(reqs, enable, &nat44_ed.Nat44EdPluginEnableDisable{}, &memclnt.ControlPing{})
		}
		results, err := v.link.Do(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i, result := range results {
			if result.Err != nil {
				t.Fatalf("request %d: %v", i, result.Err)
			}
		}
	}},
}
