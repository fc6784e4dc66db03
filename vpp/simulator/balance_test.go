package simulator

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// spread opens n connections from one address and counts them by interface.
func spread(t *testing.T, r *rig, from netip.Addr, n int) map[string]int {
	t.Helper()
	count := make(map[string]int)
	for i := range n {
		v := r.Send(tcp(from, uint16(2000+i), at(vip, 80)))
		if v.Action != Delivered {
			t.Fatal(v)
		}
		count[v.Out]++
	}
	return count
}

// TestSkew reproduces a finding on VPP: the generator's low bits make small power-of-two weight
// sums useless with twice-nat, and large weights cure it.
func TestSkew(t *testing.T) {
	tests := []struct {
		name   string
		flags  nat_types.NatConfigFlags
		from   netip.Addr
		weight uint8
		fair   bool
	}{
		{"plain, weight 1", selfTwice, clientPod, 1, true},
		{"twice-nat, weight 1", twiceNAT, outsider, 1, false},
		{"twice-nat, weight 127", twiceNAT, outsider, 127, true},
		{"twice-nat, weight 7", twiceNAT, outsider, 7, true},
		{"hairpin, weight 1", selfTwice, backendA, 1, false},
		{"hairpin, weight 127", selfTwice, backendA, 127, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.ok(lb(at(vip, 80), tt.flags, tt.weight, at(backendA, 8080), at(backendB, 8080)))
			const n = 60
			count := spread(t, r, tt.from, n)
			share := float64(max(count["p2"], count["p3"])) / n
			if fair := share < 0.75; fair != tt.fair {
				t.Errorf("%v: largest share %.2f, fair should be %t", count, share, tt.fair)
			}
		})
	}
}

// TestWeights: shares follow the weights, and weight 0 is never chosen.
func TestWeights(t *testing.T) {
	r := newRig(t)
	row := lb(at(vip, 80), selfTwice, 60, at(backendA, 8080))
	row.Locals = append(row.Locals,
		nat44_ed.Nat44LbAddrPort{Addr: backendB.As4(), Port: 8080, Probability: 20},
		nat44_ed.Nat44LbAddrPort{Addr: clientPod.As4(), Port: 8080, Probability: 0})
	r.ok(row)
	const n = 2000
	count := spread(t, r, clientPod, n)
	if count["p1"] != 0 {
		t.Errorf("weight 0 was chosen: %v", count)
	}
	if share := float64(count["p2"]) / n; math.Abs(share-0.75) > 0.05 {
		t.Errorf("share of weight 60 of 80 is %.3f", share)
	}
}

// TestOverflowingWeights: a sum above 255 wraps; backends beyond the wrap get no sessions.
func TestOverflowingWeights(t *testing.T) {
	r := newRig(t)
	r.ok(lb(at(vip, 80), selfTwice, 200, at(backendA, 8080), at(backendB, 8080)))
	if count := spread(t, r, clientPod, 500); count["p3"] != 0 {
		t.Errorf("second backend is starved on VPP: %v", count)
	}
}

func TestAffinity(t *testing.T) {
	r := newRig(t)
	svc := at(vip, 80)
	row := lb(svc, selfTwice, 50, at(backendA, 8080), at(backendB, 8080))
	row.Affinity = 100
	r.ok(row)
	home := r.Send(tcp(clientPod, 2000, svc)).Out
	for i := range uint16(30) {
		if v := r.Send(tcp(clientPod, 2001+i, svc)); v.Out != home {
			t.Fatalf("client does not stick to %s: %s", home, v)
		}
	}
	details := dump[nat44_ed.Nat44LbStaticMappingDetails](t, r.conn, &nat44_ed.Nat44LbStaticMappingDump{})
	if len(details) != 1 || details[0].Affinity != 0 {
		t.Errorf("the dump shows an affinity: %+v", details)
	}
}

// TestAffinitySurvivesItsBackend: a removed backend keeps getting the clients that stuck to it; a
// re-created row does not.
func TestAffinitySurvivesItsBackend(t *testing.T) {
	r := newRig(t)
	svc, a, b := at(vip, 80), at(backendA, 8080), at(backendB, 8080)
	row := lb(svc, selfTwice, 50, a, b, at(outsider, 1))
	row.Locals[2].Probability = 0
	row.Affinity = 100
	r.ok(row)
	home := r.Send(tcp(clientPod, 2000, svc))
	gone := a
	if home.Out == "p3" {
		gone = b
	}
	r.ok(local(false, svc, gone, 50))
	if v := r.Send(tcp(clientPod, 2001, svc)); v.Dst != gone {
		t.Errorf("client left the removed backend: %s", v)
	}
	// The index is what sticks: a backend that takes the place inherits the clients.
	r.ok(local(true, svc, at(outsider, 9), 1))
	if v := r.Send(tcp(clientPod, 2002, svc)); v.Dst != at(outsider, 9) {
		t.Errorf("client of a reused index: %s", v)
	}
	r.ok(unrow(svc))
	row.Locals = row.Locals[:2]
	r.ok(row)
	if n := len(spread(t, r, clientPod, 1)); n != 1 {
		t.Error(n)
	}
}

// TestAffinityTime: the time runs from the end of the last session, and sessions end late.
func TestAffinityTime(t *testing.T) {
	r := newRig(t)
	svc, a, b := at(vip, 80), at(backendA, 8080), at(backendB, 8080)
	row := lb(svc, selfTwice, 50, a, b)
	row.Affinity = 10
	row.Protocol = ProtoUDP
	r.ok(row)
	first := r.Send(udp(clientPod, 2000, svc))
	r.advance(time.Hour) // the session is dead but not freed
	if v := r.Send(udp(clientPod, 2001, svc)); v.Dst != first.Dst {
		t.Errorf("affinity ran while the session was in the table: %s", v)
	}
	r.advance(time.Hour)
	r.Send(udp(outsider, 1, svc)) // frees the first dead session
	r.Send(udp(outsider, 2, svc)) // and the second
	r.advance(5 * time.Second)
	if v := r.Send(udp(clientPod, 2002, svc)); v.Dst != first.Dst {
		t.Errorf("affinity ended early: %s", v)
	}
	moved := false
	for i := range uint16(20) {
		r.advance(time.Hour)
		for n := range r.SessionCount() { // free every dead session
			r.Send(udp(outsider, uint16(n), at(vip, 80)))
		}
		r.advance(11 * time.Second)
		moved = moved || r.Send(udp(clientPod, 3000+i, svc)).Dst != first.Dst
	}
	if !moved {
		t.Error("client never moves though its entry expired 20 times")
	}
}

func TestStateShowsAffinity(t *testing.T) {
	r := newRig(t)
	row := lb(at(vip, 80), selfTwice, 50, at(backendB, 8080), at(backendA, 8080))
	row.Affinity, row.Tag = 10, strings.Repeat("x", 63)
	r.ok(row)
	want := `10.96.0.1:80/6 lb [10.1.3.2:8080 weight 50, 10.1.2.2:8080 weight 50] out2in-only self-twice-nat affinity 10 tag "` + row.Tag + `"`
	if rows := r.Rows(); len(rows) != 1 || rows[0] != want {
		t.Errorf("rows %q", rows)
	}
}
