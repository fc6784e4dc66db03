package actors

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestWorldsConverge builds nodes with the real dispatcher, a real link and a simulated VPP behind its socket, changes the cluster at random,
// and lets random actors, the connection and VPP die meanwhile. In the end VPP holds exactly what an independent computation says, each row
// once, no actor is left over, and a further quiet while writes nothing.
func TestWorldsConverge(t *testing.T) {
	for seed := range uint64(campaign(6)) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			w, k := newWorld(t), newAPIServer()
			r := rand.New(rand.NewPCG(seed, 2))
			w.timing = Timing{
				Retry: 50 * time.Millisecond, Rediscover: 100 * time.Millisecond, Digest: 100 * time.Millisecond,
				Audit: 200 * time.Millisecond, Backoff: 20 * time.Millisecond,
			}
			for range 20 {
				k.mutate(r)
			}
			w.startWith(k.source())
			w.disturb(k, r)
			w.converged(k)
		})
	}
}

// disturb lets things happen for a while: mostly changes of the cluster.
func (w *world) disturb(k *apiServer, r *rand.Rand) {
	deaths := 0
	for range 80 {
		time.Sleep(time.Duration(r.IntN(8)) * time.Millisecond)
		switch what := r.IntN(16); {
		case what == 0 && deaths < 8: // the supervisors give up after ten
			deaths++
			alive := w.system.Snapshot()
			_ = w.system.Kill(alive[r.IntN(len(alive))].Path) // it may have gone meanwhile
		case what == 1:
			w.vpp.Crash()
		case what == 2:
			w.vpp.DisconnectClients()
		case what == 3:
			w.vpp.Inject(simulator.Fault{
				Message: "nat44_add_del_lb_static_mapping", Skip: r.IntN(4), Times: 1, Swallow: r.IntN(2) == 0, CloseMidFrame: true,
			})
		case what == 4:
			w.vpp.Inject(simulator.Fault{Message: "nat44_lb_static_mapping_add_del_local", Times: 1 + r.IntN(3), Retval: -1})
		default:
			k.mutate(r)
		}
	}
	w.vpp.ClearFaults()
}

// converged waits until everything is as it should be, and looks whether it stays so. What VPP holds is read beside the connection of the
// troupe.
func (w *world) converged(k *apiServer) {
	w.t.Helper()
	witness := &witness{
		deps: w.deps, cluster: k, sys: w.system, foreign: map[frontend.Key]bool{},
		vpp: &wire{vpp: w.vpp, state: &messages.LinkState{Up: true}},
	}
	wrong := witness.wrong()
	for deadline := time.Now().Add(patience); wrong != "" && time.Now().Before(deadline); wrong = witness.wrong() {
		time.Sleep(20 * time.Millisecond)
	}
	if reason := w.fatal.Load(); reason != nil {
		w.t.Fatalf("gave up: %s", *reason)
	}
	if wrong != "" {
		w.t.Fatalf("not converged:\n%s", wrong)
	}
	before := w.vpp.Counters().Mutating()
	time.Sleep(2 * w.timing.Audit)
	if after := w.vpp.Counters().Mutating(); after != before {
		w.t.Errorf("%d messages changed VPP while nothing changed", after-before)
	}
	if wrong := witness.wrong(); wrong != "" {
		w.t.Errorf("after a quiet while:\n%s", wrong)
	}
}
