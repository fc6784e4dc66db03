package contract

import (
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// leaving is the row, of port 80 of vip, that gets a backend which others have, and loses it. Its
// own backend is at host 8.
const leaving = "10.96.0.1:80/TCP"

// sharers are rows with backends at host 0, which is the one that the other row gets, and
// elsewhere.
var sharers = []struct {
	key      string
	flags    nat44.Flags
	affinity uint32
	port     uint16
	hosts    []int
}{
	{key: "10.96.0.2:80/TCP", flags: nat44.SelfTwiceNAT, port: 8000, hosts: []int{0, 1}},
	{key: "10.96.0.2:80/UDP", flags: nat44.SelfTwiceNAT, port: 8000, hosts: []int{0, 1}},
	{key: "203.0.113.1:80/TCP", flags: nat44.TwiceNAT, port: 8000, hosts: []int{0, 1}},
	{key: "10.96.0.3:80/TCP", flags: nat44.SelfTwiceNAT, affinity: 10800, port: 8000, hosts: []int{0, 1}},
	{key: "10.96.0.4:80/TCP", flags: nat44.SelfTwiceNAT, port: 8001, hosts: []int{0, 1}},
}

// simpleKey is a mapping to the shared backend that is no row. VPP does not count its sessions as
// load-balanced.
const simpleKey = "10.96.0.5:80/TCP"

// host returns a backend at a host of the rows.
func host(n byte, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, 1 + n}), port)
}

// newSharers makes a VPP with all of these rows, and flows through each of them.
func newSharers(t *testing.T, v *rig) *holder {
	t.Helper()
	h := newHolder(t, v, 1)
	rows := []nat44.Row{h.row(leaving, nat44.SelfTwiceNAT, 0, 8000, []int{8})}
	for _, s := range sharers {
		rows = append(rows, h.row(s.key, s.flags, s.affinity, s.port, s.hosts))
	}
	for _, r := range rows {
		h.want.Rows[r.Key] = r
	}
	h.settle(t, h.want)
	simple := static()
	simple.LocalIPAddress, simple.LocalPort, simple.ExternalIPAddress = host(0, 8000).Addr().As4(), 8000, key(t, simpleKey).Addr.As4()
	v.expect(t, ok, simple)
	h.dialSharers()
	return h
}

// dialSharers opens flows until each row has one to each of its backends.
func (h *holder) dialSharers() {
	h.Helper()
	missing := map[rule.Key]map[netip.AddrPort]bool{key(h.T, simpleKey): {host(0, 8000): true}}
	for k, r := range h.want.Rows {
		missing[k] = map[netip.AddrPort]bool{}
		for _, l := range r.Locals {
			missing[k][netip.AddrPortFrom(l.Addr, l.Port)] = true
		}
	}
	for round := 0; len(missing) > 0; round++ {
		if round > 100 {
			h.Fatalf("no flow to %v", missing)
		}
		var left []rule.Key
		for k := range missing {
			left = append(left, k)
		}
		for _, f := range h.open(left...) {
			delete(missing[f.row], f.backend)
			if len(missing[f.row]) == 0 {
				delete(missing, f.row)
			}
		}
	}
}

// leavingHas gives the row a set of hosts; without any the row goes.
func (h *holder) leavingHas(hosts ...int) {
	h.Helper()
	if len(hosts) == 0 {
		delete(h.want.Rows, key(h.T, leaving))
	} else {
		h.want.Rows[key(h.T, leaving)] = h.row(leaving, nat44.SelfTwiceNAT, 0, 8000, hosts)
	}
	h.settle(h.T, h.want)
}

// leaveCase looks at what happens when a row loses a backend that others have. VPP ends every
// load-balanced session to the address and port of the backend, and compares neither the row nor
// the protocol of a session, nor the VRF of the backend. So a row that names a backend of others
// and takes it away again ends their connections; docs/semantics.md says so. A VPP for which these
// cases fail because sessions are left does not have this effect.
func leaveCase(what string, join, leave func(h *holder), lost ...netip.AddrPort) contractCase {
	return contractCase{"leave/" + what, func(t *testing.T, v *rig) {
		h := newSharers(t, v)
		join(h)
		h.compare("after it has come")
		h.dialSharers()
		h.talk(h.flows, ack)
		leave(h)
		var ended, kept []*flow
		for _, f := range h.flows {
			if slices.Contains(lost, f.backend) && f.row != key(t, simpleKey) {
				ended = append(ended, f)
			} else {
				kept = append(kept, f)
			}
		}
		if want := len(sharers) - 1; len(lost) > 0 && len(ended) < want {
			t.Fatalf("%d flows are about to end, want at least one of each of %d rows", len(ended), want)
		}
		h.flows = kept
		h.compare("after it has gone")
		h.talk(h.flows, ack)
		h.stale(ended)
	}}
}

// rawShared makes the shared backend as the agent would never send it.
func rawShared(vrf uint32, weight uint8) nat44_ed.Nat44LbAddrPort {
	return nat44_ed.Nat44LbAddrPort{Addr: host(0, 8000).Addr().As4(), Port: 8000, Probability: weight, VrfID: vrf}
}

var leaveCases = []contractCase{
	leaveCase("as one of several backends", func(h *holder) { h.leavingHas(0, 8) }, func(h *holder) { h.leavingHas(8) }, host(0, 8000)),
	leaveCase("with the row", func(h *holder) { h.leavingHas(0, 8) }, func(h *holder) { h.leavingHas() }, host(0, 8000), host(8, 8000)),
	leaveCase("without ever having had a connection",
		func(h *holder) { h.expect(h.T, ok, addLocal(rawShared(0, 0))) },
		func(h *holder) { h.expect(h.T, ok, delLocal(rawShared(0, 0))) }, host(0, 8000)),
	leaveCase("in another VRF",
		func(h *holder) { h.expect(h.T, ok, addLocal(rawShared(7, 0))) },
		func(h *holder) { h.expect(h.T, ok, delLocal(rawShared(7, 0))) }, host(0, 8000)),
	leaveCase("as a simple mapping",
		func(h *holder) { h.expect(h.T, ok, simpleShared(true)) },
		func(h *holder) { h.expect(h.T, ok, simpleShared(false)) }),
}

// simpleShared makes the message for another simple mapping to the shared backend.
func simpleShared(isAdd bool) *nat44_ed.Nat44AddDelStaticMappingV2 {
	msg := static()
	msg.IsAdd, msg.LocalIPAddress, msg.LocalPort, msg.ExternalPort = isAdd, host(0, 8000).Addr().As4(), 8000, 81
	return msg
}
