package nat44

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/nat44_ed"
)

// pick is the oracle of this package: how often VPP (24.06 to 26.06, snat_static_mapping_match in
// nat44_ed.c) chooses each entry of a row, of all the numbers that it can draw. A packet for which
// it chooses none counts at -1. It returns nil where VPP divides by zero.
func pick(probabilities []uint8) map[int]int {
	prefix, sum := make([]uint8, len(probabilities)), uint8(0)
	for i, p := range probabilities {
		sum += p
		prefix[i] = sum
	}
	if sum == 0 {
		return nil
	}
	got := map[int]int{}
	for number := 1; number <= int(sum); number++ {
		low, high := 0, len(prefix)-1
		for low < high {
			middle := (high-low)/2 + low
			if number > int(prefix[middle]) {
				low = middle + 1
			} else {
				high = middle
			}
		}
		if int(prefix[low]) < number {
			low = -1
		}
		got[low]++
	}
	return got
}

// picked is pick by endpoint.
func picked(entries []Local) map[netip.AddrPort]int {
	probabilities := make([]uint8, len(entries))
	for i, l := range entries {
		probabilities[i] = l.Weight
	}
	counts := pick(probabilities)
	if counts == nil {
		return nil
	}
	got := map[netip.AddrPort]int{}
	for i, n := range counts {
		if i < 0 {
			got[netip.AddrPort{}] += n
		} else {
			got[entries[i].Endpoint()] += n
		}
	}
	return got
}

// deadly returns why VPP does not survive a row, or loses packets by it; "" = it is fine.
func deadly(all []nat44_ed.Nat44LbAddrPort) string {
	entries := make([]Local, len(all))
	for i, l := range all {
		entries[i] = Local{Addr: netip.AddrFrom4(l.Addr), Port: l.Port, Weight: l.Probability}
	}
	if len(entries) < MinEntries || len(entries) > MaxEntries {
		return fmt.Sprintf("%d entries", len(entries))
	}
	got := picked(entries)
	if got == nil {
		return "the sum of the weights is 0"
	}
	for at := range got {
		if !at.IsValid() || Reserved(at) {
			return fmt.Sprintf("packets go to %s", at)
		}
	}
	return ""
}

// checkShares checks slots against the oracle: shares are exact for a right number of entries.
func checkShares(t interface{ Fatalf(string, ...any) }, slots []slot) {
	got := picked(entries(slots))
	for i := range slots {
		if s := &slots[i]; !s.empty() && got[s.backend] != int(s.share) {
			t.Fatalf("slot %d of %+v gets %d", i, slots, got[s.backend])
		}
		delete(got, slots[i].backend)
	}
	if len(got) > 0 {
		t.Fatalf("%+v: packets go to %v", slots, got)
	}
}

// survives reports whether VPP works with these slots.
func survives(slots []slot) bool {
	sum, fits := sumOf(slots)
	return fits && sum >= 1 && sum <= MaxWeight
}

// backendAt returns a backend of tests.
func backendAt(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 8080)
}

// TestSharesExhaustively: every layout of up to 8 entries with weights of 0, 1 and 7 gives each
// backend its share.
func TestSharesExhaustively(t *testing.T) {
	states := []slot{{}, {weight: 7, share: 7}, {weight: 7}, {weight: 7, share: 3}, {weight: 1, share: 1}, {weight: 1}, {weight: 2, share: 1}}
	tried := 0
	for _, size := range []int{2, 4} {
		for n := 0; ; n++ {
			slots, rest := make([]slot, size), n
			for i := range slots {
				slots[i] = states[rest%len(states)]
				if rest /= len(states); slots[i].weight > 0 {
					slots[i].backend = backendAt(i)
				}
			}
			if rest > 0 {
				break
			}
			if survives(slots) {
				checkShares(t, slots)
				tried++
			}
		}
	}
	t.Logf("%d layouts", tried)
	if tried < 2000 {
		t.Errorf("only %d layouts", tried)
	}
}

// TestSharesAtRandom: the same up to 255 entries.
func TestSharesAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tried := 0
	for tried < 3000 {
		slots := make([]slot, []int{2, 4, 8, 16, 32, 64, maxSlots}[random.IntN(7)])
		for i := range slots {
			weight := []int{0, 1, 2, 2, 3, 7, random.IntN(60)}[random.IntN(7)]
			if weight > 0 {
				slots[i] = slot{backend: backendAt(i), weight: uint8(weight), share: uint8([]int{weight, 0, random.IntN(weight + 1)}[random.IntN(3)])}
			}
		}
		if survives(slots) {
			checkShares(t, slots)
			tried++
		}
	}
}

// TestPickRises: VPP chooses an entry only where the sum rises, whatever the number of entries. So
// it never chooses a pad or a placeholder, also while an entry is away.
func TestPickRises(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		probabilities, sum := make([]uint8, 2+random.IntN(20)), 0
		rises := make([]bool, len(probabilities))
		for i := range probabilities {
			next := random.IntN(256)
			if random.IntN(3) == 0 {
				next = sum
			}
			probabilities[i], rises[i] = uint8(next-sum), next > sum
			sum = next
		}
		for i := range pick(probabilities) {
			if i < 0 || !rises[i] {
				t.Fatalf("%v: entry %d is chosen", probabilities, i)
			}
		}
	}
}
