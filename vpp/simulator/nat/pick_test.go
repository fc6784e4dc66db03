package nat

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/vpp/simulator/packet"
)

// TestPickIsTotal: for every weight vector whose sum is 1..255 the choice is a backend with weight,
// and over one period of draws the shares are exact.
func TestPickIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNode(time.Now)
		n.Enable(Config{})
		weights := rapid.SliceOfN(rapid.Uint8Range(0, 50), 2, 20).Draw(t, "weights")
		sum := 0
		var locals []Backend
		for i, w := range weights {
			sum += int(w)
			locals = append(locals, Backend{At: at(backendA, uint16(i+1)), Probability: w})
		}
		if sum == 0 || sum > 255 {
			t.Skip("not a legal row")
		}
		mp := &Mapping{Flags: MapOut2inOnly, External: at(vip, 80), Proto: packet.ProtoTCP}
		if code := n.AddLB(mp, locals); code != 0 {
			t.Fatalf("retval %d", code)
		}
		for range 200 {
			l, _ := n.pick(mp)
			if l == nil || l.Probability == 0 {
				t.Fatalf("picked %+v of %v", l, weights)
			}
		}
	})
}
