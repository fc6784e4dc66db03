package chaos

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	adapter "github.com/troupe-vpp/troupe/actors/render/routes"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// protoTCP is IPPROTO_TCP.
const protoTCP = 6

// fault is one kind of fault. A new kind is one entry of faultKinds: plans, bounds, explanations of
// repairs and the lists of the tests are derived from the entry.
type fault struct {
	// strike begins the fault, which ends by itself or in heal. nil = the entry is a
	// consequence of other faults, which count it under its name.
	strike func(*world, *rand.Rand)
	traits traits
	// within bounds the time until all is well after the fault; 0 = soon.
	within time.Duration
	// effect is the counter that shows that the fault has hit something; "" = it always does.
	effect string
}

// traits say what a fault may cause, and which worlds have it.
type traits uint

const (
	// refuses: VPP may refuse an operation. A restarted VPP has other FIB sources and no
	// objects, and an actor may not know of the restart yet. VPP also refuses settings of an
	// interface that is gone, and changes of a row that was removed or added outside of the
	// agent.
	refuses traits = 1 << iota
	// loses: a failed actor loses the message that it would have handled next, and a suspended
	// one is late.
	loses
	// blinds: the agent may miss that an interface was replaced.
	blinds
	// anywhere: the fault is the same in a world with threads, because it is about actors,
	// messages, rows or the cluster. Other faults have a counterpart there, on the far side of
	// a connection.
	anywhere
	// simulated: a world with threads has no counterpart. It lacks external configuration, SNAT
	// and commands.
	simulated
)

// Bounds of the time until all is well after a fault, each with the reason for the wait.
const (
	soon    = 4 * tick                // without a wait for an interval
	probed  = 1100 * time.Millisecond // a refusal class has a half-open probe every second
	noticed = 1200 * time.Millisecond // VPP is read every second while a pod has no interface
	// refused settings delay everything for a second; then the half-open probe takes another
	// one
	settingsProbed = 2200 * time.Millisecond
	quarantined    = 32 * time.Second // a crash loop ends in a quarantine of 30 s
	driftCheck     = 46 * time.Second // VPP reports no such change; a drift check reads it every 45 s
	routesRead     = 61 * time.Second // VPP has no events for routes; they are read every minute
)

// faultKinds is the table of faults, by the name that plans, reports and tests show.
func faultKinds() map[string]fault {
	all := map[string]fault{}
	for _, some := range []map[string]fault{actorFaults(), vppFaults(), sourceFaults(), inputFaults(), machineFaults()} {
		maps.Copy(all, some)
	}
	return all
}

func actorFaults() map[string]fault {
	return map[string]fault{
		"kill an actor":      {strike: (*world).killOne, traits: anywhere | loses},
		"kill most services": {strike: (*world).killServices, traits: anywhere | loses},
		"stuck actor": {
			strike: func(w *world, r *rand.Rand) {
				alive := w.sys.Snapshot()
				w.hold(alive[r.IntN(len(alive))].Path, seconds(r, 8))
			},
			traits: anywhere | loses, effect: "actor held up",
		},
		"services late": {strike: (*world).lateEpoch, traits: anywhere | loses, effect: "actor held up"},
		"panics before messages": {
			strike: func(w *world, r *rand.Rand) { w.spell(r, &w.injector.before, 30, 300) },
			traits: anywhere | loses, effect: "panic before a message",
		},
		"panics after messages": {
			strike: func(w *world, r *rand.Rand) { w.spell(r, &w.injector.after, 30, 300) },
			traits: anywhere | loses, effect: "panic after a message",
		},
		"panics in starts": {
			strike: func(w *world, r *rand.Rand) { w.spell(r, &w.injector.starting, 2, 6); w.killServices(r) },
			traits: anywhere | loses, effect: "panic in the start",
		},
		"panics in stops": {
			strike: func(w *world, r *rand.Rand) { w.spell(r, &w.injector.stopping, 2, 6); w.killServices(r) },
			traits: anywhere | loses, effect: "panic in the stop",
		},
		"poisoned service": {
			strike: func(w *world, r *rand.Rand) {
				w.injector.poisoned = serviceKey(r.IntN(serviceNames))
				w.later(seconds(r, 20), func() { w.injector.poisoned = "" })
			},
			traits: anywhere | loses, within: quarantined, effect: "poisoned spec",
		},
		"crash loop": {within: quarantined},
	}
}

func vppFaults() map[string]fault {
	return map[string]fault{
		"VPP crashes": {strike: (*world).crashVPP, traits: refuses},
		"VPP begins badly": {
			strike: func(w *world, r *rand.Rand) { w.crashVPP(r); w.vpp.Refuse = 1 + r.IntN(4) },
			traits: refuses, within: settingsProbed,
		},
		"VPP hangs": {strike: func(w *world, r *rand.Rand) { w.vpp.Hang(); w.later(seconds(r, 9), w.resumeVPP) }, traits: blinds},
		"connection cut": {
			strike: func(w *world, r *rand.Rand) { w.vpp.Cut = 1 + r.IntN(20); w.reconnect(r) },
			traits: blinds, effect: "operation unanswered",
		},
		"answer lost": {
			strike: func(w *world, r *rand.Rand) { w.vpp.Lose = 1; w.reconnect(r) },
			traits: blinds, effect: "operation unanswered",
		},
		"VPP refuses": {
			strike: func(w *world, r *rand.Rand) { w.vpp.Refuse = 1 + r.IntN(8) },
			traits: refuses | blinds, within: probed, effect: "operation refused",
		},
		"table full":          {strike: (*world).fillTable, traits: refuses, within: probed, effect: "operation refused"},
		"rows stolen":         {strike: (*world).steal, traits: anywhere | refuses, within: driftCheck, effect: "drift found"},
		"rows put by another": {strike: (*world).occupy, traits: anywhere | refuses, effect: "row put"},
		"rows given back":     {strike: (*world).giveBack, traits: anywhere | refuses, within: driftCheck, effect: "row given back"},
		"routes stolen":       {strike: (*world).stealRoute, traits: anywhere, within: driftCheck, effect: "drift found"},
		"settings stolen":     {strike: (*world).stealSettings, traits: anywhere, within: driftCheck, effect: "drift found"},
	}
}

func sourceFaults() map[string]fault {
	return map[string]fault{
		"watch gap":      {strike: func(w *world, r *rand.Rand) { w.blind(r, 6) }, traits: blinds},
		"relist":         {strike: func(w *world, _ *rand.Rand) { w.source.twice = true }},
		"source breaks":  {strike: func(w *world, _ *rand.Rand) { w.source.broken = true }},
		"slow list":      {strike: func(w *world, r *rand.Rand) { w.source.slow = seconds(r, 4); w.source.broken = true }},
		"object storm":   {strike: (*world).storm, traits: anywhere},
		"cluster wiped":  {strike: (*world).wipe, traits: anywhere},
		"made anew":      {strike: (*world).renew, traits: anywhere},
		"gone unseen":    {strike: (*world).vanish},
		"node IDs away":  {strike: nodeIDs(messages.ClaimState_CLAIM_PENDING, "injected: the store is away")},
		"node ID taken":  {strike: nodeIDs(messages.ClaimState_CLAIM_FENCED, "injected: another node holds it")},
		"node IDs wiped": {strike: func(w *world, _ *rand.Rand) { w.nodes.wipe() }},
		"node IDs slow": {strike: func(w *world, r *rand.Rand) {
			w.nodes.slow = seconds(r, 4)
			w.nodes.wipe()
			w.later(seconds(r, 8), func() { w.nodes.slow = 0 })
		}},
		"node records broken": {strike: nodeIDs(messages.ClaimState_CLAIM_HELD, "injected: a record cannot be read")},
		"node sync ends":      {strike: func(w *world, _ *rand.Rand) { w.nodes.broken = true }},
	}
}

func inputFaults() map[string]fault {
	return map[string]fault{
		"documents change": {strike: func(w *world, r *rand.Rand) { w.documents.write(r); w.documents.write(r) }, traits: simulated},
		"documents away":   {strike: (*world).hideDocuments, traits: simulated},
		"documents late": {strike: func(w *world, r *rand.Rand) {
			w.documents.slow = seconds(r, 4)
			w.documents.write(r)
			w.later(seconds(r, 6), func() { w.documents.slow = 0 })
		}, traits: simulated},
		"documents end": {strike: func(w *world, r *rand.Rand) { w.documents.write(r); w.documents.broken = true }, traits: simulated},
		"commands": {strike: func(w *world, r *rand.Rand) {
			for range 1 + r.IntN(3) {
				w.command(r)
			}
		}, traits: simulated},
		"commands expire":  {strike: (*world).expireCommands, traits: simulated},
		"pod replaced":     {strike: (*world).replacePod, within: noticed},
		"overlay replaced": {strike: (*world).replaceOverlay, traits: simulated, effect: "overlay ended"},
		"overlay ended":    {traits: refuses, within: routesRead},
	}
}

func machineFaults() map[string]fault {
	return map[string]fault{
		"agent restarts":       {strike: (*world).restart, traits: blinds},
		"agent restarts alone": {strike: (*world).restartAlone, traits: blinds, effect: "mirror served"},
		"disk fails": {strike: func(w *world, r *rand.Rand) {
			w.disk.Dies, w.disk.Stop = true, w.disk.Step+1+r.IntN(4)
			w.later(seconds(r, 8), w.repairDisk)
		}, effect: "mirror not saved"},
		"machine reboots": {strike: (*world).reboot, traits: refuses},
		"machine sleeps":  {strike: func(w *world, r *rand.Rand) { w.sim.Skip(seconds(r, 20)) }, traits: blinds},
	}
}

// strikes are the names of the faults that can be injected, ordered: the dice of a plan choose by
// this order.
func strikes() []string {
	kinds := faultKinds()
	maps.DeleteFunc(kinds, func(_ string, f fault) bool { return f.strike == nil })
	return slices.Sorted(maps.Keys(kinds))
}

// within bounds the time until all is well after these faults: the bound of the slowest one.
func (c Counts) within() time.Duration {
	most := soon
	for name, f := range faultKinds() {
		if c[name] > 0 {
			most = max(most, f.within)
		}
	}
	return most
}

// any reports whether a fault with one of these traits has struck.
func (c Counts) any(of traits) bool {
	for name, f := range faultKinds() {
		if c[name] > 0 && f.traits&of != 0 {
			return true
		}
	}
	return false
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

// killOne fails a random actor. It spares most supervisors, because their children fail with them.
func (w *world) killOne(r *rand.Rand) {
	alive := w.sys.Snapshot()
	target := alive[r.IntN(len(alive))]
	if !w.injector.supervises(target.Path) || r.IntN(4) == 0 {
		_ = w.sys.Kill(target.Path) // it may be down already
	}
}

// killServices fails a random share of the service actors.
func (w *world) killServices(r *rand.Rand) {
	share := 1 + r.IntN(4)
	for _, a := range w.sys.Snapshot() {
		if a.Kind == "service" && r.IntN(4) < share {
			_ = w.sys.Kill(a.Path)
		}
	}
}

// hold suspends an actor for a while.
func (w *world) hold(path string, d time.Duration) {
	box, found := w.sys.Mailbox(path)
	if !found || w.injector.supervises(path) {
		return
	}
	box.Hold()
	w.silenced = w.silenced || path == address.Journal
	w.injector.count("actor held up")
	w.later(d, box.Release)
}

// lateEpoch restarts the renderers while services are suspended: not all services have rendered
// when a renderer has read VPP.
func (w *world) lateEpoch(r *rand.Rand) {
	for _, a := range w.sys.Snapshot() {
		if a.Kind == "service" && r.IntN(3) == 0 {
			w.hold(a.Path, seconds(r, 6))
		}
	}
	for _, renderer := range w.deps.Renderers() {
		_ = w.sys.Kill(address.Renderer(renderer)) // it may be down already
	}
}

// crashVPP restarts VPP, which has no state then.
func (w *world) crashVPP(r *rand.Rand) {
	if err := w.vpp.Crash(); err != nil {
		w.breach("restart VPP: %v", err)
	}
	clear(w.foreign)
	clear(w.provisional)
	w.reconnect(r)
}

// resumeVPP lets VPP go on. VPP first executes the pending requests, maybe of a process that has
// ended.
func (w *world) resumeVPP() {
	w.overdue = true
	w.vpp.Resume()
	w.overdue = false
	w.vpp.Connect()
}

// reconnect makes VPP reachable again after a while.
func (w *world) reconnect(r *rand.Rand) {
	w.later(seconds(r, 4), w.vpp.Connect)
	w.sim.AfterFunc(5*time.Second, w.vpp.Connect) // for a cut that came later than that
}

// fillTable makes VPP refuse new rows for a while.
func (w *world) fillTable(r *rand.Rand) {
	freeze := func(full bool) {
		if err := w.vpp.VPP.FreezeMappings(full); err != nil && w.vpp.VPP.Alive() {
			w.breach("freeze: %v", err)
		}
	}
	freeze(true)
	w.later(seconds(r, 6), func() { freeze(false) })
}

// steal removes a row and a translation, as an operator at VPP's command line might.
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

// stealRoute removes a route of the agent with the FIB source of the agent, as VPP allows every
// client.
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
	w.strayed[adapter.Name]++
}

// occupy adds a row of another owner at an address that services want. It spares an address whose
// row was just stolen: until its next read the agent takes the new row for its own, and VPP deletes
// rows by their address alone.
func (w *world) occupy(r *rand.Rand) {
	at := netip.AddrPortFrom(balancerIP(r.IntN(balancerIPs)), servicePort)
	if reads, stolen := w.stolen[at]; stolen && w.vpp.Reads < reads+2 {
		return // the first of the reads may have begun before the theft
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

// giveBack removes a row of another owner. If there is none, it adds one first.
func (w *world) giveBack(r *rand.Rand) {
	if len(w.foreign) == 0 {
		w.occupy(r)
		w.later(seconds(r, 3), w.takeAway)
		return
	}
	w.takeAway()
}

// takeAway removes the first row of another owner.
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

// blind breaks the watch of the cluster for a while.
func (w *world) blind(r *rand.Rand, most int) {
	source := w.source
	source.blind = true
	w.later(seconds(r, most), func() { source.blind = false })
}

// storm makes many changes at once.
func (w *world) storm(r *rand.Rand) {
	for range 50 + r.IntN(200) {
		w.cluster.mutate(r, false)
	}
}

// wipe removes every service, and restores them after a while.
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

// renew deletes and recreates one service after the other, as "kubectl replace --force" does: the
// new one comes shortly before or after the end of the old actor.
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

// vanish deletes services with their slices during an outage of the source: only their absence in
// the next list tells the agent of the deletion.
func (w *world) vanish(r *rand.Rand) {
	w.source.broken, w.source.slow = true, 500*time.Millisecond+seconds(r, 4)
	w.later(300*time.Millisecond, func() { w.cluster.erase(r) })
	w.later(5*time.Second, func() { w.source.slow = 0 })
}
