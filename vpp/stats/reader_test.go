package stats_test

import (
	"errors"
	"path/filepath"
	"testing"

	"go.fd.io/govpp/adapter"
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRead: an entry of a running VPP, and of the next one at the same path. A VPP that does not
// answer and damaged memory are in the tests of vpp/sessions.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats.sock")
	reader := stats.NewReader(path, "^/sys/heartbeat$", func(found []adapter.StatEntry) (string, error) {
		if len(found) != 1 {
			return "", stats.ErrNone
		}
		return string(found[0].Name), nil
	})
	if _, err := reader.Read(t.Context()); !errors.Is(err, stats.ErrNone) {
		t.Errorf("no socket: %v", err)
	}
	vpp := simulator.New(simulator.Options{})
	t.Cleanup(func() { _ = vpp.Close() })
	if err := vpp.ListenStats(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if name, err := reader.Read(t.Context()); err != nil || name != "/sys/heartbeat" {
			t.Errorf("%q, %v", name, err)
		}
		if err := vpp.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	vpp.Crash()
	if _, err := reader.Read(t.Context()); !errors.Is(err, stats.ErrNone) {
		t.Errorf("dead VPP: %v", err)
	}
}
