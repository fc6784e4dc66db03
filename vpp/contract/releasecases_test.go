package contract

import (
	"net/netip"
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// newPod gives a node one more interface with clients, for which NAT44 makes the address of every
// row one of VPP.
func newPod(t testing.TB, v *rig, want *nat44.Want) uint32 {
	t.Helper()
	index := uint32(loopback(t, v))
	want.Interfaces[index] = true
	check(t, "operations for a pod", []string{"add-roles"}, verbs(v.settle(t, want)))
	return index
}

// releaseCases are about addresses that NAT44 has made VPP's own.
var releaseCases = []contractCase{
	{"release/an address goes with its row", func(t *testing.T, v *rig) {
		web, dns := wanted(t, "10.96.0.1:80/TCP", 3), wanted(t, "10.96.0.2:53/UDP", 1)
		want := service(t, v, web, dns)
		v.settle(t, want)
		check(t, "winner when no interface came after the row", "", winner(t, v, clusterIP))
		last := newPod(t, v, want)
		check(t, "winner", "nat-low", winner(t, v, clusterIP))
		check(t, "received", map[netip.Addr]bool{web.Addr: true, dns.Addr: true}, v.read(t).Received)

		delete(want.Rows, web.Key)
		check(t, "operations", []string{"delete-row"}, verbs(v.settle(t, want)))
		check(t, "winner when the row is gone", "", winner(t, v, clusterIP))
		check(t, "winner of another row", "nat-low", winner(t, v, netip.MustParsePrefix("10.96.0.2/32")))

		want.Interfaces[last] = false
		check(t, "operations when the pod goes", []string{"delete-roles"}, verbs(v.settle(t, want)))
		want.Rows[web.Key], want.Interfaces[last] = web, true
		check(t, "operations when both come back", []string{"add-roles", "add-row"}, verbs(v.settle(t, want)))
		check(t, "winner", "", winner(t, v, clusterIP))
	}},
	{"release/also in the batch that has just made it one", func(t *testing.T, v *rig) {
		web := wanted(t, "10.96.0.1:80/TCP", 3)
		want := service(t, v, web)
		v.settle(t, want)
		want.Interfaces[uint32(loopback(t, v))] = true
		delete(want.Rows, web.Key)
		check(t, "operations", []string{"add-roles", "delete-row"}, verbs(v.settle(t, want)))
		check(t, "winner", "", winner(t, v, clusterIP))
	}},
	{"release/also beneath a route of ours", func(t *testing.T, v *rig) {
		web := wanted(t, "10.96.0.1:80/TCP", 3)
		want := service(t, v, web)
		v.settle(t, want)
		newPod(t, v, want)
		a := &refusals{rig: v}
		a.settle(t, routes.Want{serviceNet: firmReject, clusterIP: firmReject})
		check(t, "received, as far as it can be seen", map[netip.Addr]bool{}, v.read(t).Received)
		delete(want.Rows, web.Key)
		check(t, "operations", []string{"delete-row"}, verbs(v.settle(t, want)))
		check(t, "winner", "troupe", winner(t, v, clusterIP))
		a.settle(t, routes.Want{serviceNet: firmReject})
		check(t, "winner when ours is gone", "", winner(t, v, clusterIP))
		leads(t, v, "10.96.0.1/32", "10.96.0.0/16", unreachable, none)
	}},
	{"release/an address that others may use, whenever an interface comes", func(t *testing.T, v *rig) {
		web, lb := wanted(t, "10.96.0.1:80/TCP", 3), wanted(t, "203.0.113.7:80/TCP", 3)
		want := service(t, v, web, lb)
		want.Shared = func() map[netip.Addr]bool { return map[netip.Addr]bool{lb.Addr: true} }
		v.settle(t, want)
		want.Interfaces[uint32(loopback(t, v))] = true
		check(t, "operations for a pod", []string{"add-roles", "withdraw-address"}, verbs(v.settle(t, want)))
		check(t, "winner of the cluster IP", "nat-low", winner(t, v, clusterIP))
		check(t, "winner of the other address", "", winner(t, v, netip.MustParsePrefix("203.0.113.7/32")))
		leads(t, v, "203.0.113.7/32", "0.0.0.0/0", dropped, none)
	}},
	{"release/in the table of the interface", func(t *testing.T, v *rig) {
		web, lb := wanted(t, "10.96.0.1:80/TCP", 3), wanted(t, "203.0.113.7:80/TCP", 3)
		shared := netip.MustParsePrefix("203.0.113.7/32")
		want := service(t, v, web, lb)
		want.Shared = func() map[netip.Addr]bool { return map[netip.Addr]bool{lb.Addr: true} }
		v.settle(t, want)
		table(t, v, podTable)
		index := loopback(t, v)
		v.expect(t, ok, &interfaces.SwInterfaceSetTable{SwIfIndex: index, VrfID: podTable})
		want.Interfaces[uint32(index)] = true
		check(t, "operations for a pod", []string{"add-roles", "withdraw-address"}, verbs(v.settle(t, want)))
		check(t, "winner of the cluster IP", "nat-low", winnerIn(t, v, podTable, clusterIP))
		check(t, "winner of the other address", "", winnerIn(t, v, podTable, shared))
		check(t, "received", map[netip.Addr]bool{web.Addr: true}, v.read(t).Received)
		delete(want.Rows, web.Key)
		check(t, "operations", []string{"delete-row"}, verbs(v.settle(t, want)))
		check(t, "winner when the row is gone", "", winnerIn(t, v, podTable, clusterIP))
	}},
	{"release/what was left behind is found", func(t *testing.T, v *rig) {
		web := wanted(t, "10.96.0.1:80/TCP", 3)
		want := service(t, v, web)
		v.settle(t, want)
		newPod(t, v, want)
		stolen := nat44.Op{Verb: nat44.DelRow, Key: web.Key, Row: &web}
		v.apply(t, []nat44.Op{stolen})
		check(t, "winner when another client has taken the row", "nat-low", winner(t, v, clusterIP))
		delete(want.Rows, web.Key)
		check(t, "operations", []string{"withdraw-address"}, verbs(v.settle(t, want)))
		check(t, "winner", "", winner(t, v, clusterIP))
	}},
	{"release/what others need stays", func(t *testing.T, v *rig) {
		web, ours := wanted(t, "10.96.0.1:443/TCP", 3), wanted(t, "10.96.0.2:80/TCP", 1)
		want := service(t, v, web, ours)
		v.settle(t, want)
		v.expect(t, ok, row(local(1), local(2)))
		pool := twiceNAT(ours.Addr.As4(), ours.Addr.As4())
		pool.Flags = 0
		v.expect(t, ok, pool)
		newPod(t, v, want)
		want.Rows = nil
		check(t, "operations", []string{"delete-row", "delete-row"}, verbs(v.settle(t, want)))
		check(t, "winner where another client has a row", "nat-low", winner(t, v, clusterIP))
		check(t, "winner at an address of the pool", "nat-low", winner(t, v, netip.MustParsePrefix("10.96.0.2/32")))
	}},
	{"release/an address of an interface stays", func(t *testing.T, v *rig) {
		node := wanted(t, "10.0.0.1:30080/TCP", 2)
		want := service(t, v, node)
		index := pod(t, v)
		v.settle(t, want)
		newPod(t, v, want)
		delete(want.Rows, node.Key)
		check(t, "operations", []string{"delete-row"}, verbs(v.settle(t, want)))
		leads(t, v, "10.0.0.1/32", "10.0.0.1/32", toLocal, index)
	}},
	{"release/a route of an operator stays", func(t *testing.T, v *rig) {
		web := wanted(t, "10.96.0.1:80/TCP", 3)
		want := service(t, v, web)
		index := pod(t, v)
		v.settle(t, want)
		newPod(t, v, want)
		v.expect(t, ok, route(t, "10.96.0.1/32", via(index, [4]byte{10, 0, 0, 254})))
		delete(want.Rows, web.Key)
		check(t, "operations", []string{"delete-row"}, verbs(v.settle(t, want)))
		check(t, "winner", "API", winner(t, v, clusterIP))
		v.expect(t, ok, &ip.IPRouteAddDel{Route: ip.IPRoute{Prefix: sourced(false, 1, "10.96.0.1/32").Route.Prefix}})
		check(t, "winner when it is gone", "", winner(t, v, clusterIP))
	}},
}
