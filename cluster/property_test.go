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
	uid     string // of the Kubernetes object; "" = there is none
	running bool
	in      input
	// held is the ID that this process of the agent has held.
	held uint32
}

// town is a cluster of agents on one model of etcd. Agents decide on what they last saw, which may be old.
type town struct {
	model      *model
	actors     []*actor
	now        time.Time
	uids       int
	wiped      bool
	stale      bool // an agent looked at an old view of Kubernetes
	maxOffered int
	backup     map[string]pair
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
	a.in.keys = w.model.keyspace(testLayout, a.in.keys)
	if kubernetes {
		a.in.view = a.in.view.next(w.nodes())
	}
}

// act lets an agent decide on what it last saw, and carries the decision out if its guards hold.
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
	before := w.model.keyspace(testLayout, nil)
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

// checkCollected fails if something was collected that had been written after the collector looked.
func (w *town) checkCollected(t *rapid.T, a *actor, before *keyspace) {
	for key, p := range before.mods() {
		if _, left := w.model.pairs[key]; !left && p > a.in.keys.revision {
			t.Fatalf("%s collected %s, which was written at revision %d, when it had seen revision %d", a.name, key, p, a.in.keys.revision)
		}
	}
}

// happenings are what can happen; those that matter more are listed more often.
var happenings = []string{
	"look", "look", "glance", "act", "act", "act", "join", "leave", "start", "stop", "time", "wipe", "restore", "drop",
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
			w.model.pairs, w.wiped = map[string]pair{}, true
			w.model.revision++
		}
	case "restore":
		if w.backup == nil || rapid.IntRange(0, 4).Draw(t, "take a backup") > 0 {
			w.backup = maps.Clone(w.model.pairs)
			break
		}
		w.model.pairs, w.wiped = map[string]pair{}, true
		w.model.revision++
		for key, p := range w.backup {
			w.model.pairs[key] = pair{key: key, value: p.value, mod: w.model.revision}
		}
	case "drop":
		a.in.view = a.in.view.next(nil)
	}
}

// settle steps every agent until none writes any more.
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

// collected tells whether nothing is left of nodes outside Kubernetes, if there is an observer to collect it.
func (w *town) collected() bool {
	k, collectors := w.model.keyspace(testLayout, nil), 0
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

// TestAnyInterleaving lets nodes join, leave, restart, look away, act on old knowledge and lose their etcd
// or get an old backup of it, in any order. After every step
// each ID has one name and each name one ID, and no process of an agent ever holds two IDs. When every agent has had the time to observe, every
// node of Kubernetes with a running agent has an ID of its own or is fenced because another node has it.
func TestAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &town{model: newModel(), now: time.Unix(0, 0), maxOffered: rapid.SampledFrom([]int{1, 3}).Draw(t, "candidates")}
		for i := range rapid.IntRange(2, 5).Draw(t, "nodes") {
			name := fmt.Sprintf("n%d", i)
			w.actors = append(w.actors, &actor{name: name, in: input{self: identity{name: name}}})
		}
		for range rapid.SampledFrom([]int{10, 100, 500}).Draw(t, "steps") {
			w.step(t)
			if err := w.model.check(testLayout); err != nil {
				t.Fatal(err)
			}
		}
		w.settle(t)
		if err := w.model.check(testLayout); err != nil {
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
			case d.claim == fence && a.held != 0: // it was out of Kubernetes long enough to be collected, and ran on
			default:
				t.Fatalf("%s ends as %s: %s", a.name, d.claim, d.reason)
			}
		}
	})
}

// TestCrowdIsDense lets a crowd of new nodes decide on the same old snapshot again and again: the IDs end dense for any number of candidates.
func TestCrowdIsDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &town{model: newModel(), maxOffered: rapid.SampledFrom([]int{1, 4, maxCandidates}).Draw(t, "candidates")}
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
		if free := w.model.keyspace(testLayout, nil).free(1)[0]; free != uint32(count+1) {
			t.Fatalf("ID %d is free among those of %d nodes", free, count)
		}
	})
}
