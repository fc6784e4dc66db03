package cluster

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

// collectTown is an observer "me" that holds ID 1, and node b with ID 2.
func collectTown() (*model, input) {
	m := newModel()
	m.record(testLayout, 1, "me", "u")
	m.record(testLayout, 2, "b", "ub")
	m.set(testLayout.addresses("b"), `{"name":"b","vppAddresses":["10.0.0.2/24"]}`)
	return m, input{
		self: identity{name: "me", held: 1, heldUID: "u", confirmed: true}, connected: true, grace: time.Minute,
		now: time.Unix(1000, 0), keys: m.keyspace(testLayout, nil),
		view: view{}.next(nodesOf("me", node("me", "u"))),
	}
}

// watchFor lets the observer look after some time.
func watchFor(in input, d time.Duration) input {
	in.now = in.now.Add(d)
	in.absent = observeAbsence(in.absent, in.keys, in.view, in.self.name, in.now)
	return in
}

func TestCollectAfterGrace(t *testing.T) {
	m, in := collectTown()
	in = watchFor(in, 0)
	if d := decide(in); d.op != nil || !d.wake.Equal(in.now.Add(time.Minute)) {
		t.Fatalf("at first sight: operation %v, wake %s; want nothing before the grace is over", d.op, d.wake)
	}
	in = watchFor(in, time.Minute)
	d := decide(in)
	if d.op == nil || d.op.verb != verbCollect || !m.apply(d.op) {
		t.Fatalf("after the grace: %+v, want a collection", d.op)
	}
	want := []string{testLayout.id(1), testLayout.name("me")}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(m.pairs))); diff != "" {
		t.Errorf("keys left (-want +got):\n%s", diff)
	}
}

// TestCollectSparesWhoComesBack lets the node write between the decision and the transaction.
func TestCollectSparesWhoComesBack(t *testing.T) {
	for name, returns := range map[string]func(*model){
		"touches its record": func(m *model) { m.record(testLayout, 2, "b", "ub") },
		"has a new UID":      func(m *model) { m.record(testLayout, 2, "b", "again") },
		"publishes":          func(m *model) { m.set(testLayout.addresses("b"), `{"name":"b"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			m, in := collectTown()
			in = watchFor(watchFor(in, 0), time.Minute)
			d := decide(in)
			if d.op == nil {
				t.Fatal("nothing to collect")
			}
			returns(m)
			if m.apply(d.op) {
				t.Fatal("the node was robbed")
			}
			in.keys = m.keyspace(testLayout, in.keys)
			if in = watchFor(in, 0); in.absent["b"].since != in.now {
				t.Errorf("the clock did not start again: %v", in.absent)
			}
		})
	}
}

func TestNothingIsCollected(t *testing.T) {
	for name, change := range map[string]func(*model, *input){
		"while Kubernetes lists it": func(_ *model, in *input) {
			in.view = view{}.next(nodesOf("me", node("me", "u"), node("b", "ub")))
		},
		"without a view": func(_ *model, in *input) { in.view = view{} },
		"with an empty view": func(_ *model, in *input) {
			in.view = view{}.next(&messages.NodeInput{})
		},
		"with a view without this node": func(_ *model, in *input) { in.view = view{}.next(nodesOf("me", node("c", "uc"))) },
		"with a view that is no longer vouched for": func(_ *model, in *input) {
			in.view = in.view.next(nil)
		},
		"with a view that has holes": func(_ *model, in *input) {
			nodes := nodesOf("me", node("me", "u"))
			nodes.Errors = []*messages.ObjectError{{Kind: "Node", Object: "b"}}
			in.view = view{}.next(nodes)
		},
		"while etcd does not answer": func(_ *model, in *input) { in.connected = false },
		"by a node without an ID":    func(m *model, _ *input) { m.drop(testLayout.id(1), testLayout.name("me")) },
		"if a record is undecodable": func(m *model, _ *input) { m.set(testLayout.addresses("b"), "?") },
		"by a fenced node": func(m *model, _ *input) {
			m.record(testLayout, 1, "b", "ub")
			m.drop(testLayout.name("me"), testLayout.id(2))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, in := collectTown()
			change(m, &in)
			in.keys = m.keyspace(testLayout, in.keys)
			in = watchFor(watchFor(in, 0), 24*time.Hour)
			if d := decide(in); d.op != nil && d.op.verb == verbCollect {
				t.Errorf("collects: %s", d.op.about)
			}
		})
	}
}

// TestClockNeedsUninterruptedAbsence: the node is back for a moment, or the view is incomplete for
// a moment; the grace period starts again.
func TestClockNeedsUninterruptedAbsence(t *testing.T) {
	for name, interruption := range map[string]view{
		"node seen":   view{}.next(nodesOf("me", node("me", "u"), node("b", "ub"))),
		"view broken": view{}.next(nodesOf("me", node("me", "u"))).next(nil),
	} {
		_, in := collectTown()
		without := in.view
		in = watchFor(watchFor(in, 0), 50*time.Second)
		in.view = interruption
		in = watchFor(in, time.Second)
		in.view = without
		in = watchFor(watchFor(in, time.Second), 59*time.Second)
		if d := decide(in); d.op != nil {
			t.Errorf("%s: collects %s after less than the grace", name, d.op.about)
		}
		if d := decide(watchFor(in, time.Second)); d.op == nil {
			t.Errorf("%s: never collects", name)
		}
	}
}

// TestHalvesAreCollected: a node is collected although some of its keys are missing already.
func TestHalvesAreCollected(t *testing.T) {
	for name, lose := range map[string][]string{
		"addresses only": {testLayout.id(2), testLayout.name("b")},
		"id only":        {testLayout.name("b"), testLayout.addresses("b")},
		"name only":      {testLayout.id(2), testLayout.addresses("b")},
	} {
		m, in := collectTown()
		m.drop(lose...)
		in.keys = m.keyspace(testLayout, in.keys)
		in = watchFor(watchFor(in, 0), time.Minute)
		if d := decide(in); d.op == nil || !m.apply(d.op) || len(m.pairs) != 2 {
			t.Errorf("%s: %d keys left, want the 2 of the observer", name, len(m.pairs))
		}
	}
}
