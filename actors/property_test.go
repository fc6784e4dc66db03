package actors_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestWorldsConverge builds nodes with the real dispatcher, a real link and a simulated VPP behind
// its socket. It changes the cluster at random, while random actors, the connection and VPP die. In
// the end VPP holds exactly what an independent computation says, each row once, no actor is left
// over, and a further quiet while writes nothing.
func TestWorldsConverge(t *testing.T) {
	for seed := range uint64(campaign(6)) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 2))
			w := actorstest.New(t, actorstest.Config{Deps: func(d *actors.Deps) {
				d.Timing = actors.Timing{
					Retry: 50 * time.Millisecond, Rediscover: 100 * time.Millisecond, RediscoverSoon: 50 * time.Millisecond, RollCall: 100 * time.Millisecond,
					DriftCheck: driftCheck, DriftCheckLeast: driftCheck, Backoff: 20 * time.Millisecond,
				}
			}})
			for range 20 {
				w.Source.Mutate(r)
			}
			w.Start()
			disturb(w, r)
			converged(w)
		})
	}
}

// disturb lets things happen for a while: mostly changes of the cluster.
func disturb(w *actorstest.World, r *rand.Rand) {
	deaths := 0
	for range 80 {
		time.Sleep(time.Duration(r.IntN(8)) * time.Millisecond)
		switch what := r.IntN(16); {
		case what == 0 && deaths < 8: // the supervisors give up after ten
			deaths++
			alive := w.System.Snapshot()
			_ = w.System.Kill(alive[r.IntN(len(alive))].Path) // it may have gone meanwhile
		case what == 1:
			w.VPP.Crash()
		case what == 2:
			w.VPP.DisconnectClients()
		case what == 3:
			w.VPP.Inject(simulator.Fault{
				Message: "nat44_add_del_lb_static_mapping", Skip: r.IntN(4), Times: 1, Swallow: r.IntN(2) == 0, CloseMidFrame: true,
			})
		case what == 4:
			w.VPP.Inject(simulator.Fault{Message: "nat44_lb_static_mapping_add_del_local", Times: 1 + r.IntN(3), Retval: -1})
		default:
			w.Source.Mutate(r)
		}
	}
	w.VPP.ClearFaults()
}

// driftCheck is the interval of drift checks here.
const driftCheck = 200 * time.Millisecond

// converged waits until everything is as it should be, and looks whether it stays so.
func converged(w *actorstest.World) {
	w.Helper()
	w.Settle(actorstest.Patience)
	w.Rests(2 * driftCheck)
}
