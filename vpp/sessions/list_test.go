package sessions

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestList: the wanted sessions of the given backends, and not more than the limit.
func TestList(t *testing.T) {
	r := newRig(t, 1000)
	r.fill(simulator.ProtoTCP, 20)
	r.fill(simulator.ProtoUDP, 10)
	backends := []netip.Addr{netip.MustParseAddr("10.1.1.3"), netip.MustParseAddr("10.1.1.4")}
	if !r.from(simulator.ProtoTCP, backends[0], 999) || !r.from(simulator.ProtoTCP, backends[0], 998) {
		// some of these reach themselves
		t.Fatal("refused")
	}
	r.advance(10 * time.Second)
	all := func(*Flow) bool { return true }
	flows, more, err := List(t.Context(), r.link, backends, all, 100)
	if err != nil || more || len(flows) != 32 {
		t.Fatalf("%d flows, %v, %v", len(flows), more, err)
	}
	for _, f := range flows {
		itself := f.Client.Addr() == f.Backend.Addr()
		if f.Frontend != service || f.Backend.Port() != 8080 || f.Idle != 10*time.Second || f.Expired || f.Packets == 0 || f.As.IsValid() != itself ||
			!itself && f.Client.Addr() != clientPod && f.Client.Addr() != backends[0] {
			t.Errorf("%+v", f)
		}
	}
	one, _, err := List(t.Context(), r.link, backends[:1], all, 100)
	two, _, err2 := List(t.Context(), r.link, backends[1:], all, 100)
	if err != nil || err2 != nil || len(one) == 0 || len(one)+len(two) != 32 {
		t.Errorf("%d and %d flows, %v, %v", len(one), len(two), err, err2)
	}
	udp, more, err := List(t.Context(), r.link, backends, func(f *Flow) bool { return f.Protocol == simulator.ProtoUDP }, 7)
	if err != nil || !more || len(udp) != 7 || udp[0].Protocol != simulator.ProtoUDP {
		t.Errorf("%+v, %v, %v", udp, more, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := List(ended, r.link, backends, all, 1); err == nil {
		t.Error("no error")
	}
}
