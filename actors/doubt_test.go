package actors

import (
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

func TestDoubt(t *testing.T) {
	changing := func(n int) (row []uint64) {
		for i := range n {
			row = append(row, uint64(i+1))
		}
		return row
	}
	for name, c := range map[string]struct {
		differences []uint64
		want        int // how often it persists
	}{
		"nothing":                          {[]uint64{0, 0, 0}, 0},
		"under way":                        {[]uint64{0, 7, 0, 7, 0}, 0},
		"lost":                             {[]uint64{7, 7, 0}, 1},
		"lost, and again for nothing":      {[]uint64{7, 7, 7, 7}, 2},
		"always another one":               {changing(mostDoubts - 1), 0},
		"always another one, for too long": {changing(mostDoubts), 1},
	} {
		var d doubt
		n := 0
		for _, difference := range c.differences {
			if d.persists(difference) {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%s: %d times, want %d", name, n, c.want)
		}
	}
}

func TestDifference(t *testing.T) {
	a := func() *messages.Digest { return &messages.Digest{Services: 3, Hash: 5, NodeGeneration: 7} }
	if difference(a(), a()) != 0 || difference(nil, &messages.Digest{}) != 0 {
		t.Error("the same differs")
	}
	for _, b := range []*messages.Digest{{Services: 4, Hash: 5, NodeGeneration: 7}, {Services: 3, Hash: 4, NodeGeneration: 7}, {Services: 3, Hash: 5, NodeGeneration: 8}, nil} {
		if difference(a(), b) == 0 {
			t.Errorf("%v does not differ", b)
		}
	}
}
