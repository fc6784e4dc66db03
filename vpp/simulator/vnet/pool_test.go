package vnet

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestPoolIsAnIndexedSet compares the pool with a map and a stack of free indices.
func TestPoolIsAnIndexedSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pool[int]
		want := make(map[uint32]int)
		var free []uint32
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				elt := rapid.Int().Draw(t, "elt")
				expected := uint32(len(want) + len(free))
				if n := len(free); n > 0 {
					expected, free = free[n-1], free[:n-1]
				}
				if got := p.Put(elt); got != expected {
					t.Fatalf("index %d, want %d", got, expected)
				}
				want[expected] = elt
			},
			"remove": func(t *rapid.T) {
				i := rapid.Uint32Range(0, 20).Draw(t, "index")
				old, used := want[i]
				p.Remove(i)
				if used {
					delete(want, i)
					free = append(free, i)
					if got, ok := p.Stale(i); !ok || got != old {
						t.Fatalf("freed element %d reads %d, %t, want %d", i, got, ok, old)
					}
				}
			},
			"": func(t *rapid.T) {
				if p.Len() != len(want) {
					t.Fatalf("%d elements, want %d", p.Len(), len(want))
				}
				var order []uint32
				for i, elt := range p.All {
					if want[i] != elt {
						t.Fatalf("element %d is %d, want %d", i, elt, want[i])
					}
					order = append(order, i)
				}
				if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), order); diff != "" {
					t.Fatal(diff)
				}
				var walked []uint32
				for i, ok := p.Next(0); ok; i, ok = p.Next(i + 1) {
					walked = append(walked, i)
				}
				if diff := cmp.Diff(order, walked); diff != "" {
					t.Fatal(diff)
				}
				if _, ok := p.Get(1000); ok {
					t.Fatal("element out of range")
				}
				if _, ok := p.Stale(1000); ok {
					t.Fatal("stale element out of range")
				}
			},
		})
	})
}

func TestPoolStopsEarlyAndSurvivesRemoval(t *testing.T) {
	var p Pool[string]
	for _, s := range []string{"a", "b", "c", "d"} {
		p.Put(s)
	}
	var seen []string
	for i, s := range p.All {
		seen = append(seen, s)
		p.Remove(i + 1)
		if s == "c" {
			break
		}
	}
	if !slices.Equal(seen, []string{"a", "c"}) {
		t.Errorf("seen %v", seen)
	}
}
