package cluster

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

// actor is one node of the simulated cluster: its Kubernetes object, and the agent on it.
type actor struct {
	name    string
	uid     string // UID of the Kubernetes object; "" = none
	running bool
	in      input
	// held is the ID that this process of the agent has held.
	held uint32
}

// townStore is the model of a store.
type townStore interface {
	keyspace(before *keyspace) *keyspace
	// apply carries out an operation and reports whether it succeeded.
	apply(op *operation) bool
	pairs() map[string]pair
	// check returns the errors in the records. Operations of the settled nodes are not interrupted.
	check(settled ...string) error
	// garbage deletes the objects that Kubernetes deletes when only these UIDs of Nodes exist.
	garbage(uids map[string]bool)
	wipe()
	backup() (restore func())
}

// etcdTown is the model of etcd as a townStore. Its transactions are never interrupted.
type etcdTown struct{ *model }

func (m etcdTown) keyspace(before *keyspace) *keyspace { return m.model.keyspace(testLayout, before) }
func (m etcdTown) pairs() map[string]pair              { return m.model.pairs }
func (m etcdTown) check(...string) error               { return m.model.check(testLayout) }
func (m etcdTown) garbage(map[string]bool)             {}

func (m etcdTown) wipe() {
	m.model.pairs = map[string]pair{}
	m.revision++
}

func (m etcdTown) backup() (restore func()) {
	saved := maps.Clone(m.model.pairs)
	return func() {
		m.wipe()
		for key, p := range saved {
			m.model.pairs[key] = pair{key: key, value: p.value, mod: m.revision}
		}
	}
}

// towns make the model of each kind of store.
var towns = map[string]func() townStore{
	"etcd":   func() townStore { return etcdTown{newModel()} },
	"leases": func() townStore { return newLeaseModel() },
}

// town is a cluster of agents on one model of a store. Agents decide on the state that they saw
// last, which may be old.
type town struct {
	model      townStore
	actors     []*actor
	now        time.Time
	uids       int
	wiped      bool
	stale      bool // an agent looked at an old view of Kubernetes
	maxOffered int
	restore    func()
}

func (w *town) nodes() *messages.NodeInput {
	var nodes []*messages.Node
	for _, a := range w.actors {
		if a.uid != "" {
			nodes = append(nodes, node(a.name, a.uid))
		}
	}
	return nodesOf("", nodes...)
}

// look lets an agent see etcd, and Kubernetes too.
func (w *town) look(a *actor, kubernetes bool) {
	a.in.keys = w.model.keyspace(a.in.keys)
	if kubernetes {
		a.in.view = a.in.view.next(w.nodes())
	}
}

// act lets an agent decide on the state that it saw last, and carries the decision out if its
// guards are true.
func (w *town) act(t *rapid.T, a *actor) (wrote bool) {
	a.in.now, a.in.connected, a.in.grace, a.in.candidates = w.now, true, time.Minute, w.maxOffered
	if a.in.keys == nil {
		return false
	}
	a.in.absent = observeAbsence(a.in.absent, a.in.keys, a.in.view, a.name, w.now)
	d := decide(a.in)
	if d.claim == holds {
		if a.held != 0 && d.id != a.held {
			t.Fatalf("%s held ID %d and now holds ID %d", a.name, a.held, d.id)
		}
		a.held, a.in.self.held, a.in.self.heldUID = d.id, d.id, d.uid
	}
	if d.op == nil {
		return false
	}
	before := w.model.keyspace(nil)
	if !w.model.apply(d.op) {
		return false
	}
	if d.op.verb == verbCollect {
		w.checkCollected(t, a, before)
	}
	if d.op.verb == verbClaim || d.op.verb == verbAdopt {
		a.in.self.confirmed = true
	}
	return true
}

// checkCollected fails if a collected key was written after the collector had looked.
func (w *town) checkCollected(t *rapid.T, a *actor, before *keyspace) {
	for key, p := range before.mods() {
		if _, left := w.model.pairs()[key]; !left && p > a.in.keys.revision {
			t.Fatalf("%s collected %s, which was written at revision %d, when it had seen revision %d", a.name, key, p, a.in.keys.revision)
		}
	}
}

// happenings are the possible steps. More important steps are listed more often.
var happenings = []string{
	"look", "look", "glance", "act", "act", "act", "join", "leave", "start", "stop", "time", "wipe", "restore", "drop", "garbage",
}

// step does one random thing.
func (w *town) step(t *rapid.T) {
	a := rapid.SampledFrom(w.actors).Draw(t, "who")
	switch rapid.SampledFrom(happenings).Draw(t, "what") {
	case "look":
		w.look(a, true)
	case "glance":
		w.look(a, false)
		w.stale = true
	case "act":
		if a.running {
			w.act(t, a)
		}
	case "join":
		if a.uid == "" {
			w.uids++
			a.uid = fmt.Sprintf("u%d", w.uids)
		}
	case "leave":
		a.uid = ""
	case "start":
		if !a.running {
			a.running, a.in, a.held = true, input{self: identity{name: a.name}, want: a.in.want}, 0
		}
	case "stop":
		a.running = false
	case "time":
		w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 40 * time.Second, 2 * time.Minute}).Draw(t, "how long"))
	case "wipe":
		if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
			w.model.wipe()
			w.wiped = true
		}
	case "garbage":
		w.model.garbage(w.uidsOf())
	case "restore":
		if w.restore == nil || rapid.IntRange(0, 4).Draw(t, "take a backup") > 0 {
			w.restore = w.model.backup()
			break
		}
		w.restore()
		w.wiped = true
	case "drop":
		a.in.view = a.in.view.next(nil)
	}
}

// settle steps every agent until no agent writes any more.
func (w *town) settle(t *rapid.T) {
	for range 20 * len(w.actors) {
		busy := false
		for _, a := range w.actors {
			if a.running {
				w.look(a, true)
				busy = w.act(t, a) || busy
			}
		}
		w.now = w.now.Add(2 * time.Minute)
		if !busy && w.collected() {
			return
		}
	}
	t.Fatalf("the cluster does not come to rest")
}

// collected reports whether all keys of nodes outside of Kubernetes are gone, provided that an
// observer can collect them.
func (w *town) collected() bool {
	k, collectors := w.model.keyspace(nil), 0
	for _, a := range w.actors {
		if a.running && a.uid != "" && decide(a.in).claim == holds {
			collectors++
		}
	}
	for _, a := range w.actors {
		if a.uid == "" && k.idOf(a.name) != 0 && collectors > 0 {
			return false
		}
	}
	return true
}

// TestAnyInterleaving: nodes join, leave, restart, miss changes and act on old state. Their store
// loses its data or returns to an old backup. All this happens in any order; with Leases also
// between two writes of an operation, which may end there. After every step each ID has one name
// and, with etcd, each name one ID. No process of an agent ever holds two IDs. After enough time
// every node of Kubernetes with a running agent has an ID of its own, or is fenced because another
// node has its ID.
func TestAnyInterleaving(t *testing.T) {
	for kind, newStore := range towns {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { anyInterleaving(t, newStore()) })
		})
	}
}

func anyInterleaving(t *rapid.T, store townStore) {
	w := &town{model: store, now: time.Unix(0, 0), maxOffered: rapid.SampledFrom([]int{1, 3}).Draw(t, "candidates")}
	if leases, ok := store.(*leaseModel); ok {
		leases.between = func() error { return w.interrupt(t, leases) }
	}
	for i := range rapid.IntRange(2, 5).Draw(t, "nodes") {
		name := fmt.Sprintf("n%d", i)
		w.actors = append(w.actors, &actor{name: name, in: input{self: identity{name: name}}})
	}
	for range rapid.SampledFrom([]int{10, 100, 500}).Draw(t, "steps") {
		w.step(t)
		if err := w.model.check(); err != nil {
			t.Fatal(err)
		}
	}
	if leases, ok := store.(*leaseModel); ok {
		leases.between = func() error { return nil }
	}
	w.settle(t)
	if err := w.model.check(w.settled()...); err != nil {
		t.Fatal(err)
	}
	holders := map[uint32]string{}
	for _, a := range w.actors {
		d := decide(a.in)
		switch {
		case !a.running || a.uid == "":
		case d.claim == holds && holders[d.id] != "":
			t.Fatalf("ID %d is held by %s and %s", d.id, holders[d.id], a.name)
		case d.claim == holds:
			holders[d.id] = a.name
		case d.claim == fence && (w.wiped || w.stale):
		case d.claim == fence && a.held != 0:
			// it was missing in Kubernetes long enough to be collected, and kept running
		default:
			t.Fatalf("%s ends as %s: %s", a.name, d.claim, d.reason)
		}
	}
}

// interrupt does a random step between two writes of an operation: another agent acts, or the
// writing agent gets no answers any more.
func (w *town) interrupt(t *rapid.T, leases *leaseModel) error {
	between := leases.between
	leases.between = func() error { return nil } // the operations within are not interrupted
	defer func() { leases.between = between }()
	switch rapid.SampledFrom([]string{"nothing", "nothing", "step", "step", "crash"}).Draw(t, "between two writes") {
	case "step":
		for range rapid.IntRange(1, 4).Draw(t, "steps between") {
			w.step(t)
		}
	case "crash":
		return errCrash
	}
	return nil
}

// settled names the nodes that hold an ID with a running agent.
func (w *town) settled() (names []string) {
	for _, a := range w.actors {
		if a.running && a.uid != "" && decide(a.in).claim == holds {
			names = append(names, a.name)
		}
	}
	return names
}

// uidsOf are the UIDs of the Nodes.
func (w *town) uidsOf() map[string]bool {
	uids := map[string]bool{}
	for _, a := range w.actors {
		uids[a.uid] = true
	}
	return uids
}

// TestCrowdIsDense lets a crowd of new nodes decide on the same old snapshot again and again: the
// IDs end dense for any number of candidates.
func TestCrowdIsDense(t *testing.T) {
	for kind, newStore := range towns {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { crowdIsDense(t, newStore()) })
		})
	}
}

func crowdIsDense(t *rapid.T, store townStore) {
	w := &town{model: store, maxOffered: rapid.SampledFrom([]int{1, 4, maxCandidates}).Draw(t, "candidates")}
	count := rapid.IntRange(1, 40).Draw(t, "nodes")
	for i := range count {
		name := fmt.Sprintf("n%d", i)
		w.actors = append(w.actors, &actor{name: name, uid: "u" + name, running: true, in: input{self: identity{name: name}}})
	}
	rounds := 0
	for held := 0; held < count; rounds++ {
		held = 0
		for _, a := range w.actors {
			w.look(a, true)
		}
		for _, i := range rapid.Permutation(w.actors).Draw(t, "order") {
			w.act(t, i)
			if i.held != 0 {
				held++
			}
		}
		if rounds > 2*count+2 {
			t.Fatalf("%d of %d nodes have an ID after %d rounds", held, count, rounds)
		}
	}
	if free := w.model.keyspace(nil).free(1)[0]; free != uint32(count+1) {
		t.Fatalf("ID %d is free among those of %d nodes", free, count)
	}
}
