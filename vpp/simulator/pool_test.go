package simulator

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestPoolIsAnIndexedSet compares the pool with a map and a stack of free
// indices.
func TestPoolIsAnIndexedSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pool[int]
		want := make(map[uint32]int)
		var free []uint32
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				elt := rapid.Int().Draw(t, "elt")
				expected := uint32(len(want) + len(free))
				if n := len(free); n > 0 {
					expected, free = free[n-1], free[:n-1]
				}
				if got := p.put(elt); got != expected {
					t.Fatalf("index %d, want %d", got, expected)
				}
				want[expected] = elt
			},
			"remove": func(t *rapid.T) {
				i := rapid.Uint32Range(0, 20).Draw(t, "index")
				old, used := want[i]
				p.remove(i)
				if used {
					delete(want, i)
					free = append(free, i)
					if got, ok := p.stale(i); !ok || got != old {
						t.Fatalf("freed element %d reads %d, %t, want %d", i, got, ok, old)
					}
				}
			},
			"": func(t *rapid.T) {
				if p.len() != len(want) {
					t.Fatalf("%d elements, want %d", p.len(), len(want))
				}
				var order []uint32
				for i, elt := range p.all {
					if want[i] != elt {
						t.Fatalf("element %d is %d, want %d", i, elt, want[i])
					}
					order = append(order, i)
				}
				if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), order); diff != "" {
					t.Fatal(diff)
				}
				var walked []uint32
				for i, ok := p.next(0); ok; i, ok = p.next(i + 1) {
					walked = append(walked, i)
				}
				if diff := cmp.Diff(order, walked); diff != "" {
					t.Fatal(diff)
				}
				if _, ok := p.get(1000); ok {
					t.Fatal("element out of range")
				}
				if _, ok := p.stale(1000); ok {
					t.Fatal("stale element out of range")
				}
			},
		})
	})
}

func TestPoolStopsEarlyAndSurvivesRemoval(t *testing.T) {
	var p pool[string]
	for _, s := range []string{"a", "b", "c", "d"} {
		p.put(s)
	}
	var seen []string
	for i, s := range p.all {
		seen = append(seen, s)
		p.remove(i + 1)
		if s == "c" {
			break
		}
	}
	if !slices.Equal(seen, []string{"a", "c"}) {
		t.Errorf("seen %v", seen)
	}
}

// TestRandomIsVPPs: the sequence of a fresh VPP.
func TestRandomIsVPPs(t *testing.T) {
	var r vppRandom
	for i, want := range []uint32{1013904223, 1196435762, 3519870697} {
		if got := r.next(); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}

// TestRandomPort stays in range, and its low bits are as bad as VPP's.
func TestRandomPort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := vppRandom{seed: rapid.Uint32().Draw(t, "seed")}
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
