package contract

import (
	"path/filepath"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Target is a VPP that has just been started for one case. It ends with the test.
type Target interface {
	// Socket is the path of the binary API socket; it stays the same over restarts.
	Socket() string
	// StatsSocket is the path of the statistics socket; it stays the same over restarts.
	StatsSocket() string
	// Crash ends VPP at once and leaves it down, its socket file included.
	Crash(t testing.TB)
	// Restart starts VPP again after a crash, without any state.
	Restart(t testing.TB)
	// WaitDead waits until VPP has crashed.
	WaitDead(t testing.TB)
	// Traffic returns a sender of packets through VPP, valid until VPP ends.
	Traffic(t testing.TB, v *rig) traffic
}

// simulated is the simulator as a target.
type simulated struct {
	vpp    *simulator.VPP
	socket string
}

// startSimulated starts the simulator for one test.
func startSimulated(t testing.TB) Target {
	s := &simulated{vpp: simulator.New(simulator.Options{}), socket: filepath.Join(t.TempDir(), "api.sock")}
	t.Cleanup(func() {
		if err := s.vpp.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.vpp.Listen(s.socket); err != nil {
		t.Fatal(err)
	}
	if err := s.vpp.ListenStats(filepath.Join(filepath.Dir(s.socket), "stats.sock")); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *simulated) Socket() string { return s.socket }

func (s *simulated) StatsSocket() string { return s.vpp.StatsSocket() }

func (s *simulated) Crash(testing.TB) { s.vpp.Crash() }

func (s *simulated) Restart(t testing.TB) {
	t.Helper()
	if err := s.vpp.Restart(); err != nil {
		t.Fatal(err)
	}
}

func (s *simulated) WaitDead(t testing.TB) {
	t.Helper()
	waitFor(t, "the simulator to die", func() bool { return !s.vpp.Alive() })
}
