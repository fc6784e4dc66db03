package routes

import (
	"maps"
	"net/netip"
	"testing"
)

// tenThousand returns the wanted state where 10,000 cluster IPs are refused, and the state of a VPP
// that does so.
func tenThousand() (*State, Want) {
	have, want := knows(nil), Want{pfx("10.96.0.0/12"): plainReject}
	for i := range 9999 {
		want[host(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}))] = plainReject
	}
	for p := range want {
		have.Routes[Place{p, 26}] = Reject
	}
	return have, want
}

func BenchmarkDiff(b *testing.B) {
	have, want := tenThousand()
	other := maps.Clone(want)
	other[pfx("10.96.7.7/32")] = plainDrop
	for _, c := range []struct {
		name string
		have *State
		want Want
		ops  int
	}{
		{"unchanged", have, want, 0},
		{"one-changed", have, other, 1},
		{"from-nothing", NewState(), want, 10001},
		{"all-go", have, nil, 10000},
	} {
		b.Run("prefixes=10000/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if ops := Diff(c.have, c.want, true); len(ops) != c.ops {
					b.Fatal(len(ops))
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	m := newModel()
	id := m.register("troupe", 0xcf)
	_, want := tenThousand()
	for p := range want {
		m.set(p, id, toUnreach)
	}
	asked := (*State)(nil).Prefixes(want)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(b.Context(), m, asked, nil); err != nil {
			b.Fatal(err)
		}
	}
}
