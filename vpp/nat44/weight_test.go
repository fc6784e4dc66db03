package nat44

import (
	"testing"
)

func TestWeight(t *testing.T) {
	for _, c := range []struct {
		backends int
		want     uint8
	}{{1, 7}, {2, 7}, {32, 7}, {36, 7}, {37, 2}, {127, 2}} {
		if got := Weight(c.backends); got != c.want {
			t.Errorf("Weight(%d) = %d, want %d", c.backends, got, c.want)
		}
	}
	for n := 1; n <= MaxBackends; n++ {
		if sum := int(Weight(n)) * n; sum < 1 || sum > MaxWeight {
			t.Errorf("%d backends have a weight of %d in sum", n, sum)
		}
	}
}

// shares returns how many of the given number of connections each of n backends gets from VPP's
// generator (random_u32: a linear congruential one), which chooses a number modulo the sum of
// weights and draws the given number of times per connection.
func shares(n int, weight uint8, draws, connections int) []int {
	got := make([]int, n)
	seed := uint32(0x12345678)
	for range connections {
		for range draws {
			seed = 1664525*seed + 1013904223
		}
		got[int(seed%uint32(n*int(weight)))/int(weight)]++
	}
	return got
}

// spread returns the smallest and the largest share in percent of an equal share.
func spread(got []int, connections int) (least, most int) {
	least = 1 << 30
	for _, n := range got {
		percent := 100 * n * len(got) / connections
		least, most = min(least, percent), max(most, percent)
	}
	return least, most
}

// TestFairness asks for every number of backends whether all of them get their share, with one draw
// per connection (SELF_TWICE_NAT, the source stays) and with two (TWICE_NAT and hairpin: the port
// of the new source is drawn too).
func TestFairness(t *testing.T) {
	for n := 1; n <= MaxBackends; n++ {
		for draws := 1; draws <= 2; draws++ {
			connections := 2000 * n
			least, most := spread(shares(n, Weight(n), draws, connections), connections)
			if least < 80 || most > 120 {
				t.Errorf("%d backends, %d draws: shares between %d%% and %d%%", n, draws, least, most)
			}
		}
	}
}

// TestUnfairWeight shows the purpose of the weight class, as it was seen on VPP.
func TestUnfairWeight(t *testing.T) {
	if got := shares(2, 1, 2, 60); got[0] != 0 && got[1] != 0 {
		t.Errorf("two backends of weight 1 share %v; the model of the generator is wrong", got)
	}
	for _, n := range []int{2, 4, 8, 16, 32} {
		if least, _ := spread(shares(n, 7, 2, 60*n), 60*n); least < 50 {
			t.Errorf("%d backends of weight 7: least share %d%%", n, least)
		}
	}
}

// TestFairnessOfKeptWeights: a row that has shrunk keeps its weight only where every backend still
// gets its share, except weight 1, which is kept until ending the connections pays.
func TestFairnessOfKeptWeights(t *testing.T) {
	for n := 1; n <= pairedBackends; n++ {
		if !keepsWeight(pairedWeight, n) {
			t.Errorf("%d backends of weight %d do not keep it", n, pairedWeight)
		}
		for draws := 1; draws <= 3; draws++ {
			connections := 2000 * n
			if least, most := spread(shares(n, pairedWeight, draws, connections), connections); least < 80 || most > 120 {
				t.Errorf("%d backends of weight %d, %d draws: shares between %d%% and %d%%", n, pairedWeight, draws, least, most)
			}
		}
	}
}

// TestKeepsWeight walks up and down through all numbers of backends and checks where the row has to
// be replaced.
func TestKeepsWeight(t *testing.T) {
	var walk []int
	for range 2 {
		for n := 1; n <= MaxBackends; n++ {
			walk = append(walk, n)
		}
		for n := MaxBackends; n >= 1; n-- {
			walk = append(walk, n)
		}
	}
	weight, replaced := Weight(1), []int{}
	for _, n := range walk {
		if keepsWeight(weight, n) {
			continue
		}
		replaced, weight = append(replaced, n), Weight(n)
		if !keepsWeight(weight, n) || !keepsWeight(weight, n-1) {
			t.Errorf("a row of %d backends would be replaced again at once", n)
		}
	}
	check(t, "numbers of backends at which the row is replaced", []int{37}, replaced)
	for n := 1; n <= MaxBackends; n++ {
		if keepsWeight(0, n) || !keepsWeight(Weight(n), n) {
			t.Errorf("%d backends do not keep weight %d, or keep 0", n, Weight(n))
		}
	}
	if keepsWeight(255, 2) || !keepsWeight(255, 1) || !keepsWeight(20, 12) {
		t.Error("weights of other versions are not kept where they fit")
	}
}
