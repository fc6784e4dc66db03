package chaos

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// sharedFaults are the faults that are the same in every world: they are about actors, messages,
// rows and the cluster.
var sharedFaults = []string{
	"kill an actor", "kill most services", "stuck actor", "panics before messages", "panics after messages", "panics in starts", "panics in stops",
	"poisoned service", "messages lost", "one kind lost", "messages twice", "messages late", "rows stolen", "rows put by another", "rows given back", "object storm",
	"cluster wiped", "made anew", "routes stolen", "settings stolen", "services late",
}

// simulatedOnly are the faults of what a world with threads does not have: external configuration,
// SNAT and commands.
var simulatedOnly = []string{"documents change", "documents away", "documents late", "documents end", "commands", "commands expire", "overlay replaced"}

// TestFaultsOnDispatcher: whatever a simulation does to the troupe has a counterpart here.
func TestFaultsOnDispatcher(t *testing.T) {
	here := (&threaded{}).faults()
	for name := range faultKinds() {
		if here[name] == nil && !slices.Contains(simulatedOnly, name) {
			t.Errorf("%s is no fault of a world with threads", name)
		}
	}
}

// faults are the faults of a world with threads, by the names of faultKinds. VPP, the source and
// the store of node IDs fail on their own sides of the real connections.
func (w *threaded) faults() map[string]func(*rand.Rand) {
	all := map[string]func(*rand.Rand){}
	kinds := faultKinds()
	for _, name := range sharedFaults {
		all[name] = func(r *rand.Rand) { kinds[name](w.world, r) }
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
		// only its operator does
		"machine sleeps": func(r *rand.Rand) { time.Sleep(seconds(r, 4) / speed) },
	})
	return all
}

// cut ends the connection: at once, before a request, or in the middle of an answer. Or VPP dies of
// a request.
func (w *threaded) cut(r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		w.sim.DisconnectClients()
	case 1:
		w.inject(r, simulator.Fault{Skip: r.IntN(40), Times: 1, Disconnect: true})
	case 2:
		w.inject(r, simulator.Fault{Skip: r.IntN(40), Times: 1, CloseMidFrame: true})
	default:
		w.mortal++ // no rows of others are put into a VPP that may be another one a moment later
		w.inject(r, simulator.Fault{Skip: r.IntN(40), Times: 1, Crash: true})
	}
}

// inject disturbs VPP for a while.
func (w *threaded) inject(r *rand.Rand, f simulator.Fault) {
	remove := w.sim.Inject(f)
	w.later(seconds(r, 5), func() {
		remove()
		if f.Crash {
			w.mortal--
		}
	})
}

// restartAlone replaces the agent while the API server is away: the mirror serves first.
func (w *threaded) restartAlone(r *rand.Rand) {
	w.end()
	w.start(seconds(r, 9))
	w.later(seconds(r, 9), func() { w.cluster.erase(r) })
}

// outage has the source see nothing of the cluster for a while; of several outages the last one
// ends it.
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

// replacePod is that of a simulation. A VPP that begins meanwhile has the interface of the pod
// already.
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

// vanish deletes services with all that belongs to them while the source is away.
func (w *threaded) vanish(r *rand.Rand) {
	w.outage(500*time.Millisecond + seconds(r, 4))
	w.later(300*time.Millisecond, func() { w.cluster.erase(r) })
}

func (w *threaded) refuse(r *rand.Rand) {
	names := []string{
		"nat44_add_del_lb_static_mapping", "nat44_lb_static_mapping_add_del_local", "nat44_interface_add_del_feature", "acl_add_replace",
		"acl_interface_set_acl_list", "nat44_ed_plugin_enable_disable",
	}
	const unspecified = -1
	// a row that VPP changes in part may be replaced when VPP takes changes again
	w.observed.refusing++
	w.later(15*time.Second, func() { w.observed.refusing-- })
	w.inject(r, simulator.Fault{Message: names[r.IntN(len(names))], Times: 1 + r.IntN(8), Retval: unspecified})
	w.inject(r, simulator.Fault{Skip: r.IntN(20), Times: 1 + r.IntN(20), Delay: time.Duration(r.IntN(20)) * time.Millisecond})
}

func (w *threaded) fill(r *rand.Rand) {
	_ = w.sim.FreezeMappings(true) // it may be down
	w.later(seconds(r, 6), func() { _ = w.sim.FreezeMappings(false) })
}

// claims changes what the store of node IDs says for a while.
func (w *threaded) claims(r *rand.Rand, state messages.ClaimState, id uint32, slow time.Duration) {
	w.nodes.claim(&messages.ClusterState{Claim: state, Id: id, Connected: state == messages.ClaimState_CLAIM_HELD, Reason: "injected"}, slow)
	w.later(seconds(r, 8), func() { w.nodes.hold() })
}
