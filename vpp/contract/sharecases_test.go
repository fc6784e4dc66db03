package contract

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// shares opens connections through a row and returns the smallest and the largest share of a
// backend, in percent of an equal one.
func (h *holder) shares(k rule.Key) (least, most int) {
	h.Helper()
	backends := h.want.Rows[k].Locals
	got := map[netip.AddrPort]int{}
	perBackend := 40
	for range perBackend {
		for _, f := range h.open(slices.Repeat([]rule.Key{k}, len(backends))...) {
			got[f.backend]++
		}
	}
	least = 1 << 30
	for _, l := range backends {
		percent := 100 * got[netip.AddrPortFrom(l.Addr, l.Port)] / perBackend
		least, most = min(least, percent), max(most, percent)
	}
	return least, most
}

// shareCase looks how a row that masquerades every client shares its connections: VPP draws two
// random numbers for each.
func shareCase(backends int, weight uint8, fair bool) contractCase {
	return contractCase{fmt.Sprintf("share/%d backends of weight %d", backends, weight), func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		hosts := make([]int, backends)
		for i := range hosts {
			hosts[i] = i
		}
		row := h.row("203.0.113.1:80/TCP", nat44.TwiceNAT, 0, 8080, hosts)
		for i := range row.Locals {
			row.Locals[i].Weight = weight
		}
		h.want.Rows[row.Key] = row
		h.settle(t, h.want)
		least, most := h.shares(row.Key)
		t.Logf("shares between %d%% and %d%% of an equal one", least, most)
		if fair != (least >= 40) {
			t.Errorf("shares between %d%% and %d%%, fair should be %v", least, most, fair)
		}
	}}
}

// shareCases are why the weights are what they are, see nat44.Weight.
var shareCases = []contractCase{
	shareCase(2, 1, false),
	shareCase(2, 2, true),
	shareCase(2, 7, true),
	shareCase(4, 2, true),
	shareCase(3, 2, true),
	shareCase(32, 2, true),
	shareCase(36, 7, true),
	shareCase(37, 2, true),
	shareCase(64, 1, false),
	shareCase(64, 2, true),
}
