package sessions

import (
	"net/netip"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestCountLive counts the live sessions of backends by the address that clients use, with as many
// dumps as are allowed.
func TestCountLive(t *testing.T) {
	r := newRig(t, 1000)
	r.fill(simulator.ProtoUDP, 20)
	r.advance(6 * time.Minute)
	for range 10 {
		r.dial(simulator.ProtoUDP)
	}
	backends := []netip.AddrPort{
		netip.MustParseAddrPort("10.1.1.3:8080"), netip.MustParseAddrPort("10.1.1.4:8080"), netip.MustParseAddrPort("10.1.1.3:1"), netip.MustParseAddrPort("10.9.9.9:8080"),
	}
	r.ResetCounters()
	found, turn, err := CountLive(t.Context(), r.link, backends, netip.Addr{}, 8)
	if err != nil || turn.IsValid() || len(found) != 4 {
		t.Fatalf("found %v, turn %v, error %v", found, turn, err)
	}
	total := 0
	for at, live := range found {
		for to, n := range live {
			if total += n; at != backends[0] && at != backends[1] || to != (Served{service, simulator.ProtoUDP}) {
				t.Errorf("%v has %d sessions from %v", at, n, to)
			}
		}
	}
	if total != 10 {
		t.Errorf("%d live sessions", total)
	}
	if c := r.Counters(); c.Of("nat44_user_dump") != 1 || c.Of("nat44_user_session_v3_dump") != 2 {
		t.Errorf("dumps: %d and %d", c.Of("nat44_user_dump"), c.Of("nat44_user_session_v3_dump"))
	}
	// With two dumps at a time it needs two calls.
	seen := map[netip.AddrPort]bool{}
	for i := range 2 {
		found, turn, err = CountLive(t.Context(), r.link, backends[:2], turn, 2)
		for at := range found {
			seen[at] = true
		}
		if err != nil || len(found) != 1 || len(seen) != i+1 {
			t.Errorf("call %d: %v, %v", i, found, err)
		}
	}
}
