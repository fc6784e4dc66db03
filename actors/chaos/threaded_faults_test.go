package chaos

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// TestFaultsOnDispatcher: every fault of a simulation has a counterpart here, unless it is marked
// as simulated.
func TestFaultsOnDispatcher(t *testing.T) {
	here := (&threaded{}).faults()
	kinds := faultKinds()
	for _, name := range strikes() {
		if here[name] == nil && kinds[name].traits&simulated == 0 {
			t.Errorf("%s is not a fault of a world with threads", name)
		}
	}
}

// faults are the faults of a world with threads, by the names of faultKinds. VPP, the source and
// the store of node IDs fail on the far side of the real connections.
func (w *threaded) faults() map[string]func(*rand.Rand) {
	all := map[string]func(*rand.Rand){}
	for name, f := range faultKinds() {
		if f.traits&anywhere != 0 {
			all[name] = func(r *rand.Rand) { f.strike(w.world, r) }
		}
	}
	maps.Copy(all, map[string]func(*rand.Rand){
		"VPP begins badly":     func(r *rand.Rand) { w.sim.Crash(); w.refuse(r) },
		"pod replaced":         w.replacePod,
		"VPP crashes":          func(*rand.Rand) { w.sim.Crash() },
		"VPP hangs":            func(r *rand.Rand) { w.sim.Hang(); w.later(seconds(r, 9), w.sim.Resume) },
		"connection cut":       w.cut,
		"answer lost":          func(r *rand.Rand) { w.inject(r, simulator.Fault{Skip: r.IntN(20), Times: 1, Swallow: true}) },
		"VPP refuses":          w.refuse,
		"table full":           w.fill,
		"watch gap":            func(r *rand.Rand) { w.outage(seconds(r, 6)) },
		"relist":               func(*rand.Rand) { w.source.Refresh() },
		"source breaks":        func(*rand.Rand) { w.outage(0) },
		"slow list":            func(r *rand.Rand) { w.outage(seconds(r, 4)) },
		"gone unseen":          w.vanish,
		"node IDs away":        func(r *rand.Rand) { w.claims(r, messages.ClaimState_CLAIM_PENDING, 1, 0) },
		"node ID taken":        func(r *rand.Rand) { w.claims(r, messages.ClaimState_CLAIM_FENCED, 1, 0) },
		"node IDs wiped":       func(r *rand.Rand) { w.claims(r, messages.ClaimState_CLAIM_HELD, 2, 0) },
		"node IDs slow":        func(r *rand.Rand) { w.claims(r, messages.ClaimState_CLAIM_HELD, 2, seconds(r, 4)) },
		"node records broken":  func(r *rand.Rand) { w.claims(r, messages.ClaimState_CLAIM_HELD, 1, 0) },
		"node sync ends":       func(*rand.Rand) { w.nodes.fail() },
		"agent restarts":       w.restart,
		"agent restarts alone": w.restartAlone,
		"disk fails": func(r *rand.Rand) {
			w.disk.broken.Store(true)
			w.later(seconds(r, 8), func() { w.disk.broken.Store(false) })
		},
		"machine reboots": func(r *rand.Rand) { w.sim.Crash(); w.restart(r) },
		// only the driver sleeps
		"machine sleeps": func(r *rand.Rand) { time.Sleep(seconds(r, 4) / speed) },
	})
	return all
}

// cut ends the connection: at once, before a request, in the middle of an answer, or by a crash of
// VPP at a request.
func (w *threaded) cut(r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		w.sim.DisconnectClients()
	case 1:
		w.inject(r, simulator.Fault{Skip: r.IntN(40), Times: 1, Disconnect: true})
	case 2:
		w.inject(r, simulator.Fault{Skip: r.IntN(40), Times: 1, CloseMidFrame: true})
	default:
		w.mortal++ // then the driver adds no rows of other owners, because VPP may restart at once
		w.inject(r, simulator.Fault{Skip: r.IntN(40), Times: 1, Crash: true})
	}
}

// inject adds a fault to VPP for a while.
func (w *threaded) inject(r *rand.Rand, f simulator.Fault) {
	remove := w.sim.Inject(f)
	w.later(seconds(r, 5), func() {
		remove()
		if f.Crash {
			w.mortal--
		}
	})
}

// restartAlone replaces the agent while the API server is down: the mirror serves first.
func (w *threaded) restartAlone(r *rand.Rand) {
	w.end()
	w.start(seconds(r, 9))
	w.later(seconds(r, 9), func() { w.cluster.erase(r) })
}

// outage hides the cluster from the source for a while. Outages may overlap.
func (w *threaded) outage(d time.Duration) {
	source := w.source
	source.away++
	source.Hold("injected: the watch is broken", false)
	w.later(d, func() {
		if source.away--; source.away == 0 {
			source.Release()
		}
	})
}

// replacePod is replacePod of a simulation. A VPP that starts meanwhile has the interface of the
// pod already.
func (w *threaded) replacePod(r *rand.Rand) {
	const n = 2
	if w.cluster.ended[n] {
		return
	}
	w.cluster.setPod(n, true)
	_ = w.sim.DeleteInterface(podName(n))
	w.later(seconds(r, 6), func() {
		_, _ = w.sim.AddPod(podName(n), podIP(1, n))
		w.cluster.setPod(n, false)
	})
}

// vanish deletes services with their slices during an outage of the source.
func (w *threaded) vanish(r *rand.Rand) {
	w.outage(500*time.Millisecond + seconds(r, 4))
	w.later(300*time.Millisecond, func() { w.cluster.erase(r) })
}

// refuse makes VPP refuse one type of request, and delays others.
func (w *threaded) refuse(r *rand.Rand) {
	names := []string{
		"nat44_add_del_lb_static_mapping", "nat44_lb_static_mapping_add_del_local", "nat44_interface_add_del_feature", "acl_add_replace",
		"acl_interface_set_acl_list", "nat44_ed_plugin_enable_disable",
	}
	const unspecified = -1
	spared := func(request api.Message) bool {
		c, is := virtual.RowChangeOf(request)
		return is && isRolling(c)
	}
	w.inject(r, simulator.Fault{Message: names[r.IntN(len(names))], Times: 1 + r.IntN(8), Retval: unspecified, Spared: spared})
	w.inject(r, simulator.Fault{Skip: r.IntN(20), Times: 1 + r.IntN(20), Delay: time.Duration(r.IntN(20)) * time.Millisecond})
}

// fill makes VPP refuse new rows for a while.
func (w *threaded) fill(r *rand.Rand) {
	_ = w.sim.FreezeMappings(true) // VPP may be down
	w.later(seconds(r, 6), func() { _ = w.sim.FreezeMappings(false) })
}

// claims changes the state of the store of node IDs for a while.
func (w *threaded) claims(r *rand.Rand, state messages.ClaimState, id uint32, slow time.Duration) {
	w.nodes.claim(&messages.ClusterState{Claim: state, Id: id, Connected: state == messages.ClaimState_CLAIM_HELD, Reason: "injected"}, slow)
	w.later(seconds(r, 8), func() { w.nodes.hold() })
}
