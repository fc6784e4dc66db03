package nat

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRandomIsVPPs: the sequence of a fresh VPP.
func TestRandomIsVPPs(t *testing.T) {
	var r random
	for i, want := range []uint32{1013904223, 1196435762, 3519870697} {
		if got := r.next(); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}

// TestRandomPort stays in range, and its low bits are as bad as VPP's.
func TestRandomPort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random{seed: rapid.Uint32().Draw(t, "seed")}
		limit := rapid.Uint16().Draw(t, "limit")
		if got := r.port(limit); got > limit {
			t.Fatalf("port %d beyond %d", got, limit)
		}
		if a, b := r.next(), r.next(); a&1 == b&1 {
			t.Fatalf("the lowest bit does not alternate: %d, %d", a, b)
		}
	})
}

func TestSwapDelete(t *testing.T) {
	for at, want := range map[int][]int{0: {4, 2, 3}, 1: {1, 4, 3}, 3: {1, 2, 3}} {
		if got := swapDelete([]int{1, 2, 3, 4}, at); !slices.Equal(got, want) {
			t.Errorf("delete %d: %v, want %v", at, got, want)
		}
	}
}
