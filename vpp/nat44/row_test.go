package nat44

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

func TestFlagsWords(t *testing.T) {
	for flags, want := range map[Flags]string{
		0: "", Out2InOnly: "out2in-only", Out2InOnly | SelfTwiceNAT: "out2in-only,self-twice-nat",
		Out2InOnly | TwiceNAT: "out2in-only,twice-nat", knownFlags: "out2in-only,self-twice-nat,twice-nat",
	} {
		if got := flags.String(); got != want {
			t.Errorf("flags %d are %q, want %q", flags, got, want)
		}
	}
}

func TestEntries(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80", "10.1.1.2:80", "10.1.1.3:80")
	var got []string
	for _, l := range row.Entries() {
		got = append(got, fmt.Sprintf("%s %d", l, l.Weight))
	}
	check(t, "in slots", []string{
		"10.1.1.1:80 7", "192.0.2.1:2 0", "10.1.1.2:80 7", "192.0.2.2:2 0", "10.1.1.3:80 7", "192.0.2.3:2 0", "192.0.2.4:3 0", "192.0.2.4:2 0",
	}, got)
	row.Pads = false
	check(t, "without pads", row.Locals, row.Entries())
	row.Locals = locals("10.1.1.1:80")
	check(t, "alone", append(locals("10.1.1.1:80"), locals("10.1.1.1:80")...), row.Entries())
}

// TestLoad checks the load that a row has in VPP.
func TestLoad(t *testing.T) {
	for _, pads := range []bool{true, false} {
		for _, n := range []int{1, 2, 36, 37, MaxBackends} {
			row := Row{Pads: pads, Locals: many(n)}
			var want Load
			for _, l := range row.Entries() {
				want.Entries++
				want.Weight += int(l.Weight)
			}
			if got := row.load(); got != want || !got.safe() {
				t.Errorf("%d backends, pads %v: load %+v, want %+v", n, pads, got, want)
			}
		}
	}
}

func TestRowEqual(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80", "10.1.1.2:80")
	if !row.Equal(row.clone()) {
		t.Error("a row differs from its copy")
	}
	for name, change := range map[string]func(*Row){
		"address":  func(r *Row) { r.Addr = netip.MustParseAddr("10.96.0.2") },
		"port":     func(r *Row) { r.Port++ },
		"protocol": func(r *Row) { r.Proto = rule.UDP },
		"flags":    func(r *Row) { r.Flags |= TwiceNAT },
		"affinity": func(r *Row) { r.Affinity++ },
		"tag":      func(r *Row) { r.Tag += "x" },
		"pads":     func(r *Row) { r.Pads = false },
		"weight":   func(r *Row) { r.Locals[0].Weight++ },
		"backend":  func(r *Row) { r.Locals[0].Port++ },
		"fewer":    func(r *Row) { r.Locals = r.Locals[:1] },
		"odd":      func(r *Row) { r.odd = true },
	} {
		if other := row.with(change); row.Equal(other) || other.Equal(row) {
			t.Errorf("another %s makes no difference", name)
		}
	}
}
