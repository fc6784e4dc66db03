package chaos

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// protoTCP is IPPROTO_TCP.
const protoTCP = 6

// faultKinds are all faults: what they do to the world. They end by themselves, or in heal.
func faultKinds() map[string]func(*world, *rand.Rand) {
	return map[string]func(*world, *rand.Rand){
		// actors
		"kill an actor":          (*world).killOne,
		"kill most services":     (*world).killServices,
		"stuck actor":            (*world).stick,
		"panics before messages": func(w *world, r *rand.Rand) { w.spell(r, &w.injector.before, 30, 300) },
		"panics after messages":  func(w *world, r *rand.Rand) { w.spell(r, &w.injector.after, 30, 300) },
		"panics in starts":       func(w *world, r *rand.Rand) { w.spell(r, &w.injector.starting, 2, 6); w.killServices(r) },
		"panics in stops":        func(w *world, r *rand.Rand) { w.spell(r, &w.injector.stopping, 2, 6); w.killServices(r) },
		"poisoned service":       (*world).poison,
		// messages
		"messages lost":  func(w *world, r *rand.Rand) { w.spell(r, &w.injector.lost, 5, 100) },
		"messages twice": func(w *world, r *rand.Rand) { w.spell(r, &w.injector.twice, 5, 100) },
		"messages late":  func(w *world, r *rand.Rand) { w.spell(r, &w.injector.late, 5, 100) },
		"one kind lost":  (*world).muffle,
		"services late":  (*world).lateEpoch,
		// VPP
		"VPP crashes":         (*world).crashVPP,
		"VPP begins badly":    func(w *world, r *rand.Rand) { w.crashVPP(r); w.vpp.Refuse = 1 + r.IntN(4) },
		"VPP hangs":           (*world).hangVPP,
		"connection cut":      func(w *world, r *rand.Rand) { w.vpp.Cut = 1 + r.IntN(20); w.reconnect(r) },
		"answer lost":         func(w *world, r *rand.Rand) { w.vpp.Lose = 1; w.reconnect(r) },
		"VPP refuses":         func(w *world, r *rand.Rand) { w.vpp.Refuse = 1 + r.IntN(8) },
		"table full":          (*world).fillTable,
		"rows stolen":         (*world).steal,
		"rows put by another": (*world).occupy,
		"rows given back":     (*world).giveBack,
		"routes stolen":       (*world).stealRoute,
		"settings stolen":     (*world).stealSettings,
		// API server
		"watch gap":      func(w *world, r *rand.Rand) { w.blind(r, 6) },
		"relist":         func(w *world, _ *rand.Rand) { w.source.twice = true },
		"source breaks":  func(w *world, _ *rand.Rand) { w.source.broken = true },
		"slow list":      func(w *world, r *rand.Rand) { w.source.slow = seconds(r, 4); w.source.broken = true },
		"object storm":   (*world).storm,
		"cluster wiped":  (*world).wipe,
		"made anew":      (*world).renew,
		"gone unseen":    (*world).vanish,
		"node IDs away":  func(w *world, r *rand.Rand) { w.nodes.lose(); w.later(seconds(r, 8), w.nodes.hold) },
		"node ID taken":  func(w *world, r *rand.Rand) { w.nodes.fence(); w.later(seconds(r, 8), w.nodes.hold) },
		"node IDs wiped": func(w *world, _ *rand.Rand) { w.nodes.wipe() },
		"node IDs slow": func(w *world, r *rand.Rand) {
			w.nodes.slow = seconds(r, 4)
			w.nodes.wipe()
			w.later(seconds(r, 8), func() { w.nodes.slow = 0 })
		},
		"node records broken": func(w *world, r *rand.Rand) { w.nodes.garble(); w.later(seconds(r, 8), w.nodes.hold) },
		"node sync ends":      func(w *world, _ *rand.Rand) { w.nodes.broken = true },
		// external configuration, commands, pods
		"documents change": func(w *world, r *rand.Rand) { w.documents.write(r); w.documents.write(r) },
		"documents away":   (*world).hideDocuments,
		"documents late":   (*world).delayDocuments,
		"documents end":    (*world).endDocuments,
		"commands":         (*world).sendCommands,
		"commands expire":  (*world).expireCommands,
		"pod replaced":     (*world).replacePod,
		"overlay replaced": (*world).replaceOverlay,
		// the machine
		"agent restarts":       (*world).restart,
		"agent restarts alone": (*world).restartAlone,
		"disk fails":           (*world).breakDisk,
		"machine reboots":      (*world).reboot,
		"machine sleeps":       func(w *world, r *rand.Rand) { w.sim.Skip(seconds(r, 20)) },
	}
}

// seconds is a random duration below n seconds.
func seconds(r *rand.Rand, n int) time.Duration {
	return time.Duration(1+r.IntN(n*1000)) * time.Millisecond
}

// spell injects a fault at a rate for a while: into one in low to high messages.
func (w *world) spell(r *rand.Rand, rate *int, low, high int) {
	*rate = low + r.IntN(high-low)
	w.later(seconds(r, 6), func() { *rate = 0 })
}

// muffle has all messages of a random kind get lost.
func (w *world) muffle(r *rand.Rand) {
	if kinds := w.injector.kinds(); len(kinds) > 0 {
		w.lose(kinds[r.IntN(len(kinds))], r)
	}
}

// lose has all messages of this kind get lost for a while.
func (w *world) lose(kind string, r *rand.Rand) {
	w.injector.kind = kind
	w.later(seconds(r, 6), func() { w.injector.kind = "" })
}

// killOne lets a random actor fail. Supervisors are rarely among them: their children fail with
// them.
func (w *world) killOne(r *rand.Rand) {
	alive := w.sys.Snapshot()
	target := alive[r.IntN(len(alive))]
	if !supervises(target.Kind) || r.IntN(4) == 0 {
		_ = w.sys.Kill(target.Path) // it may be down already
	}
}

func (w *world) killServices(r *rand.Rand) {
	share := 1 + r.IntN(4)
	for _, a := range w.sys.Snapshot() {
		if a.Kind == "service" && r.IntN(4) < share {
			_ = w.sys.Kill(a.Path)
		}
	}
}

// stick lets an actor not work for a while.
func (w *world) stick(r *rand.Rand) {
	alive := w.sys.Snapshot()
	box, found := w.sys.Mailbox(alive[r.IntN(len(alive))].Path)
	if !found || supervises(box.Kind()) {
		return
	}
	box.Hold()
	w.silenced = w.silenced || box.Path() == address.Journal
	w.injector.count("actor held up")
	w.later(seconds(r, 8), box.Release)
}

// lateEpoch lets a renderer begin anew while messages take their time: not all services have spoken
// when it has read VPP.
func (w *world) lateEpoch(r *rand.Rand) {
	w.spell(r, &w.injector.late, 2, 6)
	for _, renderer := range w.deps.Renderers() {
		_ = w.sys.Kill(address.Renderer(renderer)) // it may be down already
	}
}

func (w *world) poison(r *rand.Rand) {
	w.injector.poisoned = serviceKey(r.IntN(serviceNames))
	w.later(seconds(r, 20), func() { w.injector.poisoned = "" })
}

func (w *world) crashVPP(r *rand.Rand) {
	if err := w.vpp.Crash(); err != nil {
		w.breach("restart VPP: %v", err)
	}
	clear(w.foreign)
	clear(w.provisional)
	w.reconnect(r)
}

func (w *world) hangVPP(r *rand.Rand) {
	w.vpp.Hang()
	w.later(seconds(r, 9), w.resumeVPP)
}

// resumeVPP ends hangVPP. What VPP executes first may be requests of a process that has ended.
func (w *world) resumeVPP() {
	w.overdue = true
	w.vpp.Resume()
	w.overdue = false
	w.vpp.Connect()
}

// reconnect lets the link find VPP again after a while.
func (w *world) reconnect(r *rand.Rand) {
	w.later(seconds(r, 4), w.vpp.Connect)
	w.sim.AfterFunc(5*time.Second, w.vpp.Connect) // if it was cut later than that
}

func (w *world) fillTable(r *rand.Rand) {
	freeze := func(full bool) {
		if err := w.vpp.VPP.FreezeMappings(full); err != nil && w.vpp.VPP.Alive() {
			w.breach("freeze: %v", err)
		}
	}
	freeze(true)
	w.later(seconds(r, 6), func() { freeze(false) })
}

// steal removes rows, as an operator at VPP's command line might.
func (w *world) steal(r *rand.Rand) {
	if w.cluster.ip6 {
		w.stealTranslation(r)
	}
	for _, row := range w.rows() {
		at := row.At
		if r.IntN(3) == 0 || w.observed.has(at) {
			continue
		}
		if _, err := w.vpp.VPP.ForeignRemove(at, protoTCP); err != nil {
			w.breach("steal: %v", err)
		}
		delete(w.foreign, at)
		w.stolen[at] = w.vpp.Reads
		return
	}
}

// stealRoute removes one of our routes, with our own source: VPP allows it to every client.
func (w *world) stealRoute(r *rand.Rand) {
	vpp := w.vpp.Reader()
	state, err := routes.Read(context.Background(), vpp, nil, nil)
	if err != nil || len(state.Routes) == 0 {
		return // VPP is down, or has just begun
	}
	places := slices.SortedFunc(maps.Keys(state.Routes), func(a, b routes.Place) int { return a.Prefix.Addr().Compare(b.Prefix.Addr()) })
	place := places[r.IntN(len(places))]
	op := routes.Op{Verb: routes.Delete, Source: place.Source, Prefix: place.Prefix}
	if done := routes.Apply(context.Background(), vpp, []routes.Op{op}); done[0].Err != nil {
		w.breach("steal: %v", done[0].Err)
	}
	w.strayed["routes"]++
}

// occupy puts a row of another owner on an address that services want. Not where a row of ours has
// just been stolen: as long as the troupe has not read VPP again it believes the row to be its own,
// and VPP deletes rows by their address alone.
func (w *world) occupy(r *rand.Rand) {
	at := netip.AddrPortFrom(balancerIP(r.IntN(balancerIPs)), servicePort)
	if reads, stolen := w.stolen[at]; stolen && w.vpp.Reads < reads+2 {
		// the first one may have been under way
		return
	}
	backend := func(n byte) simulator.Backend {
		return simulator.Backend{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 9, n}), endpointPort), Weight: 1}
	}
	retval, err := w.vpp.VPP.ForeignAdd(simulator.ForeignRow{VIP: at, Proto: protoTCP, Tag: "theirs", Backends: []simulator.Backend{backend(1), backend(2)}})
	if err == nil && retval == 0 {
		w.foreign[at] = true
		w.injector.count("row put")
	}
}

// giveBack removes a row of another owner; where there is none, one is put there before.
func (w *world) giveBack(r *rand.Rand) {
	if len(w.foreign) == 0 {
		w.occupy(r)
		w.later(seconds(r, 3), w.takeAway)
		return
	}
	w.takeAway()
}

func (w *world) takeAway() {
	for _, row := range w.rows() {
		if at := row.At; w.foreign[at] {
			if _, err := w.vpp.VPP.ForeignRemove(at, protoTCP); err != nil {
				w.breach("give back: %v", err)
			}
			delete(w.foreign, at)
			w.injector.count("row given back")
			return
		}
	}
}

// blind lets the source miss what happens for a while.
func (w *world) blind(r *rand.Rand, most int) {
	source := w.source
	source.blind = true
	w.later(seconds(r, most), func() { source.blind = false })
}

func (w *world) storm(r *rand.Rand) {
	for range 50 + r.IntN(200) {
		w.cluster.mutate(r, false)
	}
}

// wipe removes every service, and brings back what was there after a while.
func (w *world) wipe(r *rand.Rand) {
	before := map[int]service{}
	for n, s := range w.cluster.services {
		before[n] = s
	}
	for n := range serviceNames {
		w.cluster.remove(n)
	}
	w.later(seconds(r, 5), func() {
		for n := range serviceNames {
			if s, had := before[n]; had {
				w.cluster.put(n, s)
			}
		}
	})
}

// renew deletes one service after the other and creates it again at once, as "kubectl replace
// --force" does: just before everything of the old one has gone, or just after that.
func (w *world) renew(r *rand.Rand) {
	at := time.Duration(0)
	for n, s := range w.cluster.ordered() {
		w.later(at, func() { w.cluster.remove(n) })
		w.later(at+time.Duration(r.IntN(6000))*time.Microsecond, func() {
			if _, exists := w.cluster.services[n]; !exists {
				w.cluster.put(n, s)
			}
		})
		at += 30 * time.Millisecond
	}
}

// vanish deletes services with all that belongs to them during an outage of the source: the next
// list has nothing of them, and nothing else says that they are gone.
func (w *world) vanish(r *rand.Rand) {
	w.source.broken, w.source.slow = true, 500*time.Millisecond+seconds(r, 4)
	w.later(300*time.Millisecond, func() { w.cluster.erase(r) })
	w.later(5*time.Second, func() { w.source.slow = 0 })
}
