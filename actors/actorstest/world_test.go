package actorstest

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/kube"
)

// TestWorld: the same story on the real dispatcher and in virtual time. Wrong finds what is wrong,
// and nothing else.
func TestWorld(t *testing.T) {
	sim := &runtime.SimOptions{Seed: 1, MessageCost: 200 * time.Microsecond, StepLimit: 1_000_000}
	for name, config := range map[string]Config{"real dispatcher": {}, "virtual time": {Sim: sim}} {
		t.Run(name, func(t *testing.T) {
			w := New(t, config)
			w.Source.Serve("web", "10.96.0.10", "10.1.1.2", "10.1.2.9")
			w.Start()
			w.Settled()
			w.Settle(Patience)
			if rows := w.Rows(); len(rows) != 1 || w.Statuses()["default/web"] == nil || w.Statuses()["default/db"] != nil {
				t.Errorf("rows %q, statuses %v", rows, w.Statuses())
			}
			w.Source.Serve("db", "10.96.0.11", "10.1.1.3")
			w.Settled()
			if rows := w.Rows(); len(rows) != 2 {
				t.Errorf("settled with rows %q", rows)
			}
			before := w.Writes()
			w.Kill(address.Renderer("nat44"))
			w.Stop()
			w.Stop()
			w.Start()
			w.Settled()
			w.Quiet()
			w.Rests(time.Second)
			if n := w.Writes() - before; n != 0 {
				t.Errorf("%d writes of a restart", n)
			}
			if events := w.Events(&status.EventsQuery{Limit: 1000}); len(events) < 2 || events[0].GetSeq() >= events[1].GetSeq() {
				t.Errorf("events %v", events)
			}
			if retval, err := w.VPP.ForeignRemove(netip.MustParseAddrPort("10.96.0.11:80"), 6); retval != 0 || err != nil {
				t.Fatal(retval, err)
			}
			if wrong := w.Wrong(); !strings.HasPrefix(wrong, "add row 10.96.0.11:80/TCP ") {
				t.Errorf("a row was removed: %q", wrong)
			}
		})
	}
}

// TestWrong: each kind of mistake is found.
func TestWrong(t *testing.T) {
	Simulate(t, 1, Config{}, func(w *World) {
		w.Source.Serve("web", "10.96.0.10", "10.1.1.2")
		w.Settle(time.Minute)
		expect := func(what string, all ...string) {
			t.Helper()
			wrong := w.Wrong()
			for _, want := range all {
				if !strings.Contains(wrong, want) {
					t.Errorf("%s: %q, want %q", what, wrong, want)
				}
			}
		}
		w.Source.Serve("new", "10.96.0.12")
		expect("a service that is not served", `shown are ["default/web"], want`)
		w.Settle(time.Minute)
		w.Source.Change(func(s *kube.Store) { s.Delete("Service", "default/web") })
		expect("a service that is gone", `want ["default/new"]`)
		w.Settle(time.Minute)
		w.Stream.Disconnect("a test")
		w.Run(time.Second)
		expect("no connection", "not ready: ")
		w.Stream.Connect()
		w.Settle(3 * time.Minute)
		w.Stream.Veto = func(api.Message) error { return errors.New("no") }
		w.CrashVPP()
		w.Stream.Connect()
		w.Run(time.Minute)
		w.Stream.Veto = nil
		w.Settle(3 * time.Minute)
	})
}

// TestSimulateRepeats: the same seed gives the same steps.
func TestSimulateRepeats(t *testing.T) {
	var hashes []uint64
	for _, seed := range []uint64{1, 1, 2} {
		Simulate(t, seed, Config{Deps: func(d *actors.Deps) { d.Timing.Retry = time.Second }}, func(w *World) {
			r := rand.New(rand.NewPCG(1, 1))
			for range 30 {
				w.Source.Mutate(r)
				w.Run(100 * time.Millisecond)
			}
			w.Settle(3 * time.Minute)
			hashes = append(hashes, w.Sim.TraceHash())
		})
	}
	if hashes[0] != hashes[1] || hashes[0] == hashes[2] {
		t.Errorf("hashes %x", hashes)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
