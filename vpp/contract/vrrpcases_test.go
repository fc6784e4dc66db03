package contract

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/interface_types"
	binapi "go.fd.io/govpp/binapi/vrrp"

	"github.com/troupe-vpp/troupe/vpp/vrrp"
)

// routers are the virtual routers that VPP holds.
func routers(t testing.TB, v *rig) map[vrrp.Key]vrrp.Held {
	t.Helper()
	all, err := vrrp.Read(t.Context(), v.link, func(vrrp.Key) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// bringRouter makes VPP hold a router (nil = none), and returns what that took.
func bringRouter(t testing.TB, v *rig, k vrrp.Key, want *vrrp.Router) string {
	t.Helper()
	diff := func() []vrrp.Op {
		if h, is := routers(t, v)[k]; is {
			return vrrp.Diff(k, &h, want)
		}
		return vrrp.Diff(k, nil, want)
	}
	done := ""
	for _, result := range vrrp.Apply(t.Context(), v.link, diff()) {
		if result.Err != nil || result.Unknown {
			t.Errorf("%s: error %v, unknown %v", result.Op.Describe(), result.Err, result.Unknown)
		}
		done += fmt.Sprint(result.Op.Verb)
	}
	check(t, "operations left", nil, diff())
	return done
}

// routerAddr is an address of a virtual router; families have the same last byte.
func routerAddr(last int, ipv6 bool) netip.Addr {
	if ipv6 {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8:50::%d", last))
	}
	return netip.MustParseAddr(fmt.Sprintf("192.168.50.%d", last))
}

// vrrpCases are about the plugin vrrp.
var vrrpCases = []contractCase{
	{"vrrp/add, replace, delete, both families", func(t *testing.T, v *rig) {
		index := uint32(loopback(t, v))
		for _, ipv6 := range []bool{false, true} {
			k := vrrp.Key{Interface: index, ID: 7, IPv6: ipv6}
			want := &vrrp.Router{Priority: 100, Interval: 100 * time.Millisecond, Addresses: []netip.Addr{routerAddr(1, ipv6), routerAddr(2, ipv6)}}
			check(t, "first", fmt.Sprint(vrrp.Add), bringRouter(t, v, k, want))
			check(t, "again", "", bringRouter(t, v, k, want))
			want.Priority = 1
			check(t, "another priority", fmt.Sprint(vrrp.Replace), bringRouter(t, v, k, want))
			want.Addresses = want.Addresses[1:]
			check(t, "fewer addresses", fmt.Sprint(vrrp.Replace), bringRouter(t, v, k, want))
			v.expect(t, ok, &binapi.VrrpVrStartStop{SwIfIndex: interface_types.InterfaceIndex(index), VrID: 7, IsIPv6: map[bool]uint8{true: 1}[ipv6]})
			check(t, "stopped by another client", fmt.Sprint(vrrp.Start), bringRouter(t, v, k, want))
			check(t, "deleted", fmt.Sprint(vrrp.Delete), bringRouter(t, v, k, nil))
			check(t, "left", 0, len(routers(t, v)))
		}
	}},
	{"vrrp/refusals", func(t *testing.T, v *rig) {
		index := uint32(loopback(t, v))
		add := func(change func(*binapi.VrrpVrAddDel)) *binapi.VrrpVrAddDel {
			k := vrrp.Key{Interface: index, ID: 7}
			m := (vrrp.Op{Verb: vrrp.Add, Key: k, Router: vrrp.Router{Priority: 100, Interval: time.Second, Addresses: []netip.Addr{routerAddr(1, false)}}}).Messages()[0].(*binapi.VrrpVrAddDel)
			change(m)
			return m
		}
		const noValue, inUse, exists, noAddress = -7, -105, -116, -57
		v.expect(t, noSuchEntry, add(func(m *binapi.VrrpVrAddDel) { m.IsAdd = 0 }))
		v.expect(t, noSuchEntry, &binapi.VrrpVrStartStop{SwIfIndex: interface_types.InterfaceIndex(index), VrID: 7, IsStart: 1})
		v.expect(t, noInterface, add(func(m *binapi.VrrpVrAddDel) { m.SwIfIndex = 99 }))
		v.expect(t, noValue, add(func(m *binapi.VrrpVrAddDel) { m.Priority = 0 }))
		v.expect(t, noValue, add(func(m *binapi.VrrpVrAddDel) { m.Interval = 0 }))
		v.expect(t, noValue, add(func(m *binapi.VrrpVrAddDel) { m.VrID = 0 }))
		v.expect(t, noAddress, add(func(m *binapi.VrrpVrAddDel) { m.Addrs, m.NAddrs = nil, 0 }))
		v.expect(t, ok, add(func(*binapi.VrrpVrAddDel) {}))
		v.expect(t, exists, add(func(*binapi.VrrpVrAddDel) {}))
		v.expect(t, inUse, add(func(m *binapi.VrrpVrAddDel) { m.VrID = 8 }))
		v.expect(t, noValue, add(func(m *binapi.VrrpVrAddDel) { m.IsAdd, m.Priority = 0, 0 }))
		v.expect(t, ok, add(func(m *binapi.VrrpVrAddDel) { m.IsAdd = 0 }))
		v.refused(t, &binapi.VrrpVrDel{})
	}},
	{"vrrp/a router that is alone becomes the owner", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		k := vrrp.Key{Interface: uint32(index), ID: 7}
		v.expect(t, ok, up(index))
		v.expect(t, ok, address(t, index, "192.168.50.9/24"))
		bringRouter(t, v, k, &vrrp.Router{Priority: 1, Interval: 100 * time.Millisecond, Addresses: []netip.Addr{routerAddr(1, false)}})
		for range 500 {
			if h := routers(t, v)[k]; h.Owner() {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("held %+v", routers(t, v)[k])
	}},
}
