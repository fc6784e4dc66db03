package nat44

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// VPP stores no owner of the plugin's settings. They are ours unless another client of VPP has put
// something into NAT44: then they are left as they are.

// marked returns the number of sessions with which the agent enables the plugin; 0 = VPP's default.
// It is odd, which is the agent's mark: no other client of VPP asks for it.
func marked(limit uint32) uint32 { return cmp.Or(limit, vppSessions) | 1 }

// Another returns why NAT44 cannot serve beside another client of VPP; "" = it can. Without
// forwarding NAT44 translates or drops what has no mapping, as that client wants. Our mark, our own
// twice-NAT address, or a row shows that forwarding was on before, or was about to be.
func (s *State) Another(w *Want) string {
	what := s.others(w)
	if !s.Enabled || s.Forwarding || what == "" || s.Sessions == marked(w.SessionLimit) || len(s.Rows) > 0 || w.TwiceNAT.IsValid() && slices.Contains(s.TwiceNAT, w.TwiceNAT) {
		return ""
	}
	const text = "another client of VPP has set up NAT44 (it has %s) without forwarding, which services need and which stays as it is"
	return fmt.Sprintf(text, what)
}

// Keeps says which settings stay as another client of VPP has them; "" = none.
func (s *State) Keeps(w *Want) string {
	what, wanted := s.others(w), w.Timeouts.withDefaults()
	if !s.Enabled || what == "" || s.Timeouts == wanted {
		return ""
	}
	return fmt.Sprintf("another client of VPP uses NAT44 (it has %s), so that the timeouts of sessions stay as they are", what)
}

// others names something in NAT44 that is not ours; "" = there is nothing.
func (s *State) others(w *Want) string {
	ours := slices.Concat(w.Pool, w.RetiredPool, w.Retired, []netip.Addr{w.TwiceNAT})
	isOurs := func(a netip.Addr) bool { return slices.Contains(ours, a) }
	if len(s.Foreign) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Keys(s.Foreign)), rule.Key.Compare)
		return fmt.Sprintf("%s %s", s.Foreign[first], first)
	}
	for _, pool := range [][]netip.Addr{s.Pool, s.TwiceNAT} {
		if foreign := slices.DeleteFunc(slices.Clone(pool), isOurs); len(foreign) > 0 {
			return "the address " + slices.MinFunc(foreign, netip.Addr.Compare).String()
		}
	}
	for _, index := range slices.SortedFunc(maps.Keys(s.Output), cmp.Compare[uint32]) {
		if _, known := w.Outputs[index]; !known {
			return fmt.Sprintf("the output interface %d", index)
		}
	}
	return ""
}
