package contract

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// suiteWithWorkers begins the names of the cases of the suite that are played with workers: those
// with packets, without those that take long because VPP stops all workers at each of very many
// messages.
var suiteWithWorkers = []string{"plugin/workers", "clash/", "snat/packets with it", "leave/as one", "cnat packets/IPv6/"}

// TestRealVPPWorkers plays cases with packets on a VPP with workers, of which four share the cores
// of a small machine. With TROUPE_VPP_WORKERS all of TestRealVPP has workers; but VPP stops all of
// them at each message, and ends ("worker thread deadlock") where one gets no core for a second, as
// happens in the cases with a thousand messages on a busy machine.
func TestRealVPPWorkers(t *testing.T) {
	binary, plugins, why := realvpp.Find()
	if why != "" {
		t.Skip(why)
	}
	for _, n := range []int{1, 2, 4} {
		start := func(t testing.TB) Target {
			p := realvpp.Start(t, binary, plugins)
			p.SetWorkers(n)
			p.Restart(t)
			return real{p}
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			for _, c := range slices.Concat(append(slices.Clone(cases), workerCases)...) {
				if slices.ContainsFunc(append(suiteWithWorkers, "workers/"), func(prefix string) bool { return strings.HasPrefix(c.name, prefix) }) {
					t.Run(c.name, func(t *testing.T) { c.run(t, newRig(t, start(t))) })
				}
			}
		})
	}
}

// spread makes a VPP whose workers all do NAT, with a row that has backends of all of them.
func spread(t *testing.T, v *rig, backends int) (*holder, nat44.Row) {
	t.Helper()
	h := newHolder(t, v, 1)
	h.want.AllWorkers = true
	hosts := make([]int, backends)
	for i := range hosts {
		hosts[i] = i
	}
	row := h.row("10.96.0.1:80/TCP", nat44.SelfTwiceNAT, 0, 8080, hosts)
	row.Pads = !v.read(t).Spread(true)
	h.want.Rows[row.Key] = row
	h.settle(t, h.want)
	return h, row
}

// distribute opens connections of as many clients and returns how many each backend gets.
func (h *holder) distribute(k rule.Key, n int) []int {
	h.Helper()
	got := map[netip.AddrPort]int{}
	for _, f := range h.open(slices.Repeat([]rule.Key{k}, n)...) {
		got[f.backend]++
	}
	return slices.Sorted(maps.Values(got))
}

// workerCases are about workers alone.
var workerCases = []contractCase{
	{"workers/one does NAT: backends share connections evenly, and come and go one by one", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		row := h.row("10.96.0.1:80/TCP", nat44.SelfTwiceNAT, 0, 8080, []int{0, 1, 2, 3, 4})
		h.want.Rows[row.Key] = row
		h.settle(t, h.want)
		check(t, "workers for NAT", min(1, v.workers(t)/2), min(1, v.read(t).Workers))
		shares := h.distribute(row.Key, 200)
		t.Logf("200 connections to 5 backends: %v", shares)
		if len(shares) != 5 || shares[0] < 20 || shares[4] > 60 {
			t.Errorf("5 backends share 200 connections so: %v", shares)
		}
		ops := h.settle(t, h.want)
		check(t, "operations the second time", 0, len(ops))
		h.change("a backend goes, another comes", func(w *nat44.Want) {
			w.Rows[row.Key] = h.row(row.Key.String(), nat44.SelfTwiceNAT, 0, 8080, []int{1, 2, 3, 4, 5})
		})
		h.talk(h.flows, ack)
	}},
	{"workers/all do NAT: every client gets through, hairpins and masqueraded clients too", func(t *testing.T, v *rig) {
		h, row := spread(t, v, 8)
		masked := h.row("203.0.113.1:80/TCP", nat44.TwiceNAT, 0, 8080, []int{0, 1, 2, 3, 4, 5, 6, 7})
		masked.Pads = row.Pads
		h.want.Rows[masked.Key] = masked
		h.settle(t, h.want)
		shares := h.distribute(row.Key, 200)
		t.Logf("200 connections of as many clients to 8 backends: %v", shares)
		if len(shares) < v.workers(t) {
			t.Errorf("only %d backends of %d workers get connections", len(shares), v.workers(t))
		}
		h.distribute(masked.Key, 50)
		h.talk(h.flows, ack)
		h.hairpins(row)
	}},
	{"workers/all do NAT: backends come and go one by one", func(t *testing.T, v *rig) {
		h, row := spread(t, v, 8)
		h.distribute(row.Key, 50)
		for _, hosts := range [][]int{{0, 2, 4, 6}, {0, 1, 2}, {1, 2, 3, 4, 5, 6, 7}, {3, 5}} {
			// some workers have none
			h.change(fmt.Sprint("to ", hosts), func(w *nat44.Want) {
				next := h.row(row.Key.String(), nat44.SelfTwiceNAT, 0, 8080, hosts)
				next.Pads = row.Pads
				w.Rows[row.Key] = next
			})
			h.distribute(row.Key, 20)
			h.talk(h.flows, ack)
		}
	}},
	{"workers/all do NAT: the limit of sessions is for each", func(t *testing.T, v *rig) {
		h, row := spread(t, v, 8)
		const limit = 10
		if n := v.workers(t); n > 1 { // below the limit that the plugin was enabled with
			if err := sessions.Raise(t.Context(), v.link, limit); err != nil {
				t.Fatal(err)
			}
			dials := make([]packet, 12*limit*n)
			for i := range dials {
				client := netip.AddrFrom4([4]byte{198, 19, byte(i >> 8), byte(i)})
				dials[i] = packet{
					port: h.clients, id: uint64(i + 1), src: netip.AddrPortFrom(client, 30000), dst: netip.AddrPortFrom(row.Addr, row.Port), proto: rule.TCP, flags: syn,
				}
			}
			opened := len(h.traffic.exchange(t, dials))
			if opened <= limit || opened > limit*n {
				t.Errorf("%d connections, the limit is %d for each of %d workers", opened, limit, n)
			}
			usage, err := v.readUsage(t, sessions.NewReader(v.StatsSocket()))
			if err != nil || usage.Total != uint64(opened) || usage.Busiest > limit {
				t.Errorf("usage %+v, %v; %d connections", usage, err, opened)
			}
			if f := sessions.Free(t.Context(), v.link, nil, sessions.Slice{Deletions: 1000, Dumps: 100}); f.Err != nil || f.Deleted > 0 || !f.Complete {
				t.Errorf("freed %+v", f) // none has expired
			}
			v.expect(t, ok, &nat44_ed.NatSetTimeouts{UDP: 1, TCPEstablished: 1, TCPTransitory: 1, ICMP: 1})
			waitFor(t, "sessions to expire", func() bool {
				look, err := sessions.Look(t.Context(), v.link)
				return err == nil && look.All.Expired == uint64(opened)
			})
			if f := sessions.Free(t.Context(), v.link, nil, sessions.Slice{Deletions: 1000, Dumps: 100}); f.Err != nil || f.Deleted != opened {
				t.Errorf("freed %+v, want %d", f, opened)
			}
			v.expect(t, ok, &nat44_ed.NatSetTimeouts{UDP: 300, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 60})
		}
		h.open(row.Key)
	}},
	{"workers/all do NAT: a connection past the service is masqueraded", func(t *testing.T, v *rig) {
		h, row := spread(t, v, 8)
		h.want.MasqueradeClashes = true
		h.settle(t, h.want)
		for _, f := range h.open(slices.Repeat([]rule.Key{row.Key}, 20)...) {
			for _, flags := range []uint8{syn, ack} {
				h.next += 2
				there := packet{port: h.clients, id: h.next, src: f.client, dst: f.backend, proto: rule.TCP, flags: flags}
				got, found := h.traffic.exchange(t, []packet{there})[there.id]
				if !found || got.src.Addr() != h.want.TwiceNAT || got.dst != f.backend {
					t.Fatalf("%s arrived %v as %s", there, found, got)
				}
				back := packet{port: h.backends, id: h.next + 1, src: got.dst, dst: got.src, proto: rule.TCP, flags: flags | ack}
				if got, found = h.traffic.exchange(t, []packet{back})[back.id]; !found || got.src != f.backend || got.dst != f.client {
					t.Fatalf("%s arrived %v as %s", back, found, got)
				}
			}
			h.next++
		}
		h.talk(h.flows, ack)
	}},
}

// hairpins has each backend of a row open connections through the row until one leads to itself,
// whatever worker has it.
func (h *holder) hairpins(row nat44.Row) {
	h.Helper()
	reached := 0
	for _, l := range row.Locals {
		for port := uint16(30000); port < 30060; port++ {
			h.next++
			p := packet{
				port: h.backends, id: h.next, src: netip.AddrPortFrom(l.Addr, port), dst: netip.AddrPortFrom(row.Addr, row.Port), proto: rule.TCP, flags: syn,
			}
			got, found := h.traffic.exchange(h.T, []packet{p})[p.id]
			self := found && got.dst.Addr() == l.Addr
			if !found || self != (got.src.Addr() == h.want.TwiceNAT) {
				h.Errorf("%s arrived %v as %s", p, found, got)
			}
			h.next++
			back := packet{port: h.backends, id: h.next, src: got.dst, dst: got.src, proto: rule.TCP, flags: syn | ack}
			if left, found := h.traffic.exchange(h.T, []packet{back})[back.id]; !found || left.src != p.dst || left.dst != p.src {
				h.Errorf("answer %s arrived %v as %s", back, found, left)
			}
			if self {
				reached++
				break
			}
		}
	}
	h.Logf("%d of %d backends reach themselves", reached, len(row.Locals))
}
