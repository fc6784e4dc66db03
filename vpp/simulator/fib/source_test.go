package fib

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSourcesRunOut(t *testing.T) {
	s := NewSources()
	last := Source(0)
	for id := s.Add("many", 1); id != 0; id = s.Add("many", 1) {
		last = id
	}
	if last != lastSource || s.Add("another", 2) != 0 || !s.Known(last) || s.Known(255) {
		t.Errorf("the last id is %d", last)
	}
}

// TestSourcesAreOrdered: priorities decide, then the order of registration; no two sources are
// alike.
func TestSourcesAreOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSources()
		for range rapid.IntRange(0, 20).Draw(t, "sources") {
			s.Add("x", rapid.SampledFrom([]uint8{0, 0x80, 0xd0, 0xff}).Draw(t, "priority"))
		}
		order := slices.Clone(s.All)
		slices.SortFunc(order, func(a, b Registration) int { return s.compare(a.ID, b.ID) })
		for i := 1; i < len(order); i++ {
			a, b := order[i-1], order[i]
			if s.compare(a.ID, b.ID) == 0 || a.Class > b.Class || a.Class == b.Class && a.ID > b.ID {
				t.Fatalf("%+v before %+v", a, b)
			}
		}
	})
}
