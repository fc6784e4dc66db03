package nat44

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// TestAnother: where another client of VPP has put something into NAT44, its settings stay. Without
// forwarding nothing is written at all.
func TestAnother(t *testing.T) {
	ours, theirs := netip.MustParseAddr("10.1.1.254"), netip.MustParseAddr("192.0.2.9")
	mapping := map[rule.Key]string{{Addr: theirs, Port: 22, Proto: rule.TCP}: "a static mapping"}
	for name, tt := range map[string]struct {
		have   func(s *State)
		barred bool
		verbs  []Verb // on settings
	}{
		"not enabled":                         {func(s *State) { s.Enabled = false }, false, []Verb{Enable, Forwarding, SetTimeouts, AddAddress}},
		"enabled, nothing in it":              {func(*State) {}, false, []Verb{Forwarding, SetTimeouts, AddAddress}},
		"a mapping":                           {func(s *State) { s.Foreign = mapping }, true, nil},
		"an address of the pool":              {func(s *State) { s.Pool = []netip.Addr{theirs} }, true, nil},
		"a twice-NAT address":                 {func(s *State) { s.TwiceNAT = []netip.Addr{theirs} }, true, nil},
		"an output interface":                 {func(s *State) { s.Output[3] = true }, true, nil},
		"a mapping, with forwarding":          {func(s *State) { s.Foreign, s.Forwarding = mapping, true }, false, []Verb{AddAddress}},
		"a mapping, our address is there":     {func(s *State) { s.Foreign, s.TwiceNAT = mapping, []netip.Addr{ours} }, false, []Verb{Forwarding}},
		"a mapping, our rows are there":       {func(s *State) { s.Foreign, s.Rows[rule.Key{Port: 80}] = mapping, Row{} }, false, []Verb{Forwarding, AddAddress}},
		"a mapping, our number of sessions":   {func(s *State) { s.Foreign, s.Sessions = mapping, marked(0) }, false, []Verb{Forwarding, AddAddress}},
		"our own addresses":                   {func(s *State) { s.Pool, s.TwiceNAT = []netip.Addr{ours}, []netip.Addr{ours} }, false, []Verb{Forwarding, SetTimeouts}},
		"a pool of another, several workers":  {func(s *State) { s.Pool, s.Forwarding, s.Workers = []netip.Addr{theirs}, true, 2 }, false, []Verb{AddAddress}},
		"nothing of another, several workers": {func(s *State) { s.Forwarding, s.Workers = true, 2 }, false, []Verb{OneWorker, SetTimeouts, AddAddress}},
	} {
		t.Run(name, func(t *testing.T) {
			have := NewState()
			have.Enabled, have.Timeouts = true, vppTimeouts()
			tt.have(have)
			want := &Want{Globals: Globals{TwiceNAT: ours, Timeouts: Timeouts{UDP: 60}}}
			if why := have.Another(want); (why != "") != tt.barred {
				t.Errorf("another: %q", why)
			}
			if keeps := have.Keeps(want) != ""; keeps != (have.Enabled && have.others(want) != "") {
				t.Errorf("keeps %q", have.Keeps(want))
			}
			var verbs []Verb
			for _, op := range DiffGlobals(have, want) {
				verbs = append(verbs, op.Verb)
			}
			if len(verbs) != len(tt.verbs) {
				t.Fatalf("operations %v, want %v", verbs, tt.verbs)
			}
			for i := range verbs {
				if verbs[i] != tt.verbs[i] {
					t.Errorf("operations %v, want %v", verbs, tt.verbs)
				}
			}
		})
	}
}
