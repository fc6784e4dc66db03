package contract

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// heldChanges is over how many changes sessions are held open.
const heldChanges = 1000

// heldSpec is a row with sessions. Hosts have backends of several rows, with a port per row: an
// address and port that two rows have is a case of its own, because VPP ends the sessions of both.
type heldSpec struct {
	key      string
	flags    nat44.Flags
	affinity uint32
	// keep are the hosts that stay; the others, up to most, come and go.
	keep, most int
	// start is the number of hosts at the beginning.
	start int
}

// heldSpecs are the rows whose sessions to the hosts that stay live through everything.
var heldSpecs = []heldSpec{
	{key: "10.96.0.1:80/TCP", flags: nat44.SelfTwiceNAT, keep: 4, most: 20, start: 6},
	{key: "10.96.0.2:53/UDP", flags: nat44.SelfTwiceNAT, keep: 4, most: 20, start: 6},
	{key: "203.0.113.1:443/TCP", flags: nat44.TwiceNAT, keep: 4, most: 20, start: 6},
	{key: "203.0.113.1:443/UDP", flags: nat44.TwiceNAT, keep: 4, most: 20, start: 6},
	{key: "10.96.0.3:80/TCP", flags: nat44.SelfTwiceNAT, affinity: 10800, keep: 4, most: 30, start: 4},
	// of weight 2, and stays so however few are left
	{key: "10.96.0.4:80/TCP", flags: nat44.TwiceNAT, keep: 3, most: 100, start: 40},
	{key: "10.96.0.5:53/UDP", flags: nat44.SelfTwiceNAT, keep: 1, most: 3, start: 2},
}

// otherRows is how many rows come and go as a whole.
const otherRows = 8

// row makes a row of hosts whose backends have this port.
func (h *holder) row(text string, flags nat44.Flags, affinity uint32, port uint16, hosts []int) nat44.Row {
	h.Helper()
	r := nat44.Row{Key: key(h.T, text), Flags: nat44.Out2InOnly | flags, Affinity: affinity, Pads: true}
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		r.Locals = append(r.Locals, nat44.Local{Addr: netip.AddrFrom4([4]byte{10, 1, 0, byte(1 + host)}), Port: port})
	}
	weight := nat44.Weight(len(r.Locals))
	for i := range r.Locals {
		r.Locals[i].Weight = weight
	}
	r.Tag = nat44.Tag{Hash: nat44.ServiceHash("default/" + text), Affinity: affinity}.String()
	return r
}

// held makes a row of heldSpecs: with the hosts that stay, those from extra, and no others.
func (h *holder) held(i int, extra []int) nat44.Row {
	spec, hosts := heldSpecs[i], slices.Clone(extra)
	for host := range spec.keep {
		hosts = append(hosts, host)
	}
	return h.row(spec.key, spec.flags, spec.affinity, uint16(8000+i), hosts)
}

// never leaves none of some out.
const never = math.MaxInt

// some returns random numbers from..to-1, each with a chance of one in n to be left out.
func (h *holder) some(from, to, n int) (hosts []int) {
	for host := from; host < to; host++ {
		if h.random.IntN(n) > 0 {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// dialAll opens flows through the rows of heldSpecs until each host that stays has one.
func (h *holder) dialAll() {
	h.Helper()
	for i, spec := range heldSpecs {
		k := key(h.T, spec.key)
		missing := map[netip.AddrPort]bool{}
		for _, l := range h.held(i, nil).Locals {
			missing[netip.AddrPortFrom(l.Addr, l.Port)] = true
		}
		for round := 0; len(missing) > 0; round++ {
			if round > 100 {
				h.Fatalf("%s: no flow to %v", k, missing)
			}
			for _, f := range h.open(k, k, k, k, k, k) {
				f.first = missing[f.backend]
				delete(missing, f.backend)
			}
		}
	}
	for _, f := range h.flows {
		if f.first {
			h.counts["sessions held from the beginning"]++
		}
	}
}

// topUp opens flows through rows that have few.
func (h *holder) topUp() {
	h.Helper()
	open := map[rule.Key]int{}
	for _, f := range h.flows {
		open[f.row]++
	}
	var rows []rule.Key
	for k := range h.want.Rows {
		for range 5 - open[k] {
			rows = append(rows, k)
		}
	}
	slices.SortFunc(rows, rule.Key.Compare)
	h.open(rows...)
}

// disturb makes one random change of everything but the backends that stay.
func (h *holder) disturb(loops []interface_types.InterfaceIndex) []*flow {
	h.Helper()
	i := h.random.IntN(len(heldSpecs))
	spec := heldSpecs[i]
	other := key(h.T, fmt.Sprintf("10.96.1.%d:80/%s", h.random.IntN(otherRows), []string{"TCP", "UDP"}[h.random.IntN(2)]))
	_, exists := h.want.Rows[other]
	switch roll := h.random.IntN(100); {
	case roll < 40 && spec.affinity == 0:
		return h.change("backends of a row that has sessions", func(w *nat44.Want) {
			row := h.held(i, h.some(spec.keep, spec.keep+1+h.random.IntN(spec.most-spec.keep), 2+h.random.IntN(3)))
			for _, l := range slices.Concat(w.Rows[row.Key].Locals, w.Rows[row.Key].Draining) {
				if l.Weight = 0; !has(row, netip.AddrPortFrom(l.Addr, l.Port)) && h.random.IntN(2) == 0 {
					row.Draining = append(row.Draining, l)
				}
			}
			slices.SortFunc(row.Draining, func(a, b nat44.Local) int { return a.Addr.Compare(b.Addr) })
			w.Rows[row.Key] = row
		})
	case roll < 40:
		return h.change("another backend for a row with affinity", func(w *nat44.Want) {
			k := key(h.T, spec.key)
			hosts := h.some(spec.keep, min(len(w.Rows[k].Locals)+1, spec.most), never)
			w.Rows[k] = h.held(i, hosts)
		})
	case roll < 50 && exists:
		return h.change("row removed", func(w *nat44.Want) { delete(w.Rows, other) })
	case roll < 90:
		return h.change(map[bool]string{true: "another row changed", false: "row added"}[exists], func(w *nat44.Want) {
			flags := []nat44.Flags{nat44.SelfTwiceNAT, nat44.TwiceNAT}[h.random.IntN(8)/7]
			affinity := []uint32{0, 60}[h.random.IntN(8)/7]
			hosts := append(h.some(0, 12, 2), h.random.IntN(12))
			port := 9000 + uint16(other.Addr.As4()[3])*2 + uint16(other.Proto&1)
			w.Rows[other] = h.row(other.String(), flags, affinity, port, hosts)
		})
	default:
		return h.change("settings and roles", func(w *nat44.Want) {
			w.Timeouts.ICMP = uint32(30 + h.random.IntN(3))
			w.Timeouts.UDP = uint32(7200 + h.random.IntN(3))
			w.SessionLimit += uint32(h.random.IntN(2))
			w.Interfaces[uint32(loops[h.random.IntN(len(loops))])] = h.random.IntN(2) == 0
		})
	}
}

var heldCases = []contractCase{
	{"held/sessions over 1000 random changes", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		loops := []interface_types.InterfaceIndex{loopback(t, v), loopback(t, v), loopback(t, v)}
		for i, spec := range heldSpecs {
			row := h.held(i, h.some(spec.keep, spec.start, never))
			h.want.Rows[row.Key] = row
		}
		h.settle(t, h.want)
		h.dialAll()
		h.compare("before the first change")
		for i := range heldChanges {
			h.stale(h.disturb(loops))
			h.topUp()
			h.talk(h.flows, ack)
			if t.Failed() {
				t.Fatalf("after change %d", i)
			}
		}
		h.compare("after the last change")
		h.print()
	}},
}
