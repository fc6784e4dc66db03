package sessions

import (
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestTheTrap: a table that is full of expired sessions refuses every new connection for ever. This
// package exists for that case.
func TestTheTrap(t *testing.T) {
	r := newRig(t, 100)
	r.fill(simulator.ProtoUDP, 100)
	r.advance(24 * time.Hour)
	for range 10 {
		if r.dial(simulator.ProtoTCP) || r.dial(simulator.ProtoUDP) {
			t.Fatal("the simulator does not model the trap")
		}
	}
	if n := r.SessionCount(); n != 100 {
		t.Errorf("%d sessions", n)
	}
}

// TestOutOfTheTrap: the table is filled again and again, to the last place. With housekeeping no
// connection is refused, because sessions that expired meanwhile were freed; the limit stays where
// it was.
func TestOutOfTheTrap(t *testing.T) {
	r := newRig(t, 1000)
	var h History
	freed := 0
	for round := range 5 {
		for i := range 1000 {
			if !r.dial(simulator.ProtoUDP) {
				t.Fatalf("round %d: connection %d refused with %d sessions", round, i, r.SessionCount())
			}
		}
		r.advance(10 * time.Minute)
		for range 10 {
			var did []Decision
			did, h = r.keep(h, Config{Max: 1000, Batch: 100})
			if freed += did[len(did)-1].Free; did[len(did)-1].Raise > 0 {
				t.Errorf("decided %+v", did)
			}
		}
		if n := r.SessionCount(); n != 600 {
			t.Fatalf("round %d: %d sessions are left", round, n)
		}
	}
	if freed != 5*400 {
		t.Errorf("%d freed", freed)
	}
}

// TestIntoTheFullTable: an agent that starts with a full table makes room with its first decisions.
func TestIntoTheFullTable(t *testing.T) {
	r := newRig(t, 100)
	r.fill(simulator.ProtoUDP, 100)
	r.advance(24 * time.Hour)
	if r.dial(simulator.ProtoTCP) {
		t.Fatal("not full")
	}
	did, h := r.keep(History{}, Config{Max: 10000})
	if len(did) != 2 || !did[0].Survey || did[1].Raise <= 100 || !r.dial(simulator.ProtoTCP) {
		t.Fatalf("decided %+v", did)
	}
	limit := did[1].Raise
	for range 5 {
		if did, h = r.keep(h, Config{Max: 10000}); did[len(did)-1].Raise > 0 {
			t.Errorf("raised again: %+v", did)
		}
	}
	// Another agent reads the limit that the first one set, and does not lower it.
	if did, h = r.keep(History{}, Config{Max: 10000, Min: 500}); did[len(did)-1].Raise > 0 {
		t.Errorf("another agent decides %+v", did)
	}
	if got, exact := h.Limit(Usage{}); got != limit || !exact {
		t.Errorf("limit %d, want %d", got, limit)
	}
}

// TestBurst: living connections beyond the limit that the plugin was enabled with.
func TestBurst(t *testing.T) {
	r := newRig(t, 1000)
	var h History
	for range 50 {
		for range 90 {
			if !r.dial(simulator.ProtoTCP) {
				t.Fatalf("refused with %d sessions", r.SessionCount())
			}
		}
		_, h = r.keep(h, Config{Max: 20000})
	}
	if n := r.SessionCount(); n < 4000 {
		t.Errorf("only %d sessions", n)
	}
	if limit, exact := h.Limit(Usage{}); limit < 4500 || limit > 20000 || !exact {
		t.Errorf("limit %d", limit)
	}
}
