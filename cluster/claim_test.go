package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

var testLayout = etcdLayout{prefix: DefaultPrefix}

// claimCase is a keyspace, an observer and the expected outcome of its claim. The test decides and
// carries out each case until there is nothing left to write.
type claimCase struct {
	name  string
	store func(*model)
	self  identity // name is "me" unless set
	nodes *messages.NodeInput
	// first is the state before any write, last the state at the end.
	first, last messages.ClaimState
	id          uint32
	reason      string // part of the last reason
	// verbs are the operations on the way.
	verbs []verb
	// stored are the records at the end: "id name uid".
	stored []string
}

const (
	waits = messages.ClaimState_CLAIM_PENDING
	holds = messages.ClaimState_CLAIM_HELD
	fence = messages.ClaimState_CLAIM_FENCED
)

func me(uid string) *messages.NodeInput { return nodesOf("me", node("me", uid), node("other", "o")) }

var claimCases = []claimCase{
	{
		name: "first node of all", nodes: me("u"), first: waits, last: holds, id: 1,
		verbs: []verb{verbClaim}, stored: []string{"1 me u"},
	},
	{
		name:  "lowest hole",
		store: func(m *model) { m.record(testLayout, 1, "a", "x"); m.record(testLayout, 3, "c", "x") },
		nodes: me("u"), first: waits, last: holds, id: 2,
		verbs: []verb{verbClaim}, stored: []string{"1 a x", "2 me u", "3 c x"},
	},
	{
		name:  "the ID of an undecodable record is taken",
		store: func(m *model) { m.set(testLayout.id(1), "garbage") },
		nodes: me("u"), first: waits, last: holds, id: 2, reason: "/nodes/id/1: undecodable",
		verbs: []verb{verbClaim}, stored: []string{"2 me u"},
	},
	{name: "Kubernetes has not spoken", first: waits, last: waits, reason: "waiting for Kubernetes"},
	{
		name: "not in Kubernetes", nodes: nodesOf("me", node("other", "o")), first: waits, last: waits, reason: "not in Kubernetes",
	},
	{
		name: "a view without nodes is no obstacle", nodes: nodesOf("me"), first: waits, last: holds, id: 1,
		verbs: []verb{verbClaim}, stored: []string{"1 me "},
	},
	{
		name:  "restart keeps the ID, with one write",
		store: func(m *model) { m.record(testLayout, 7, "me", "u") },
		nodes: me("u"), first: waits, last: holds, id: 7, verbs: []verb{verbAdopt}, stored: []string{"7 me u"},
	},
	{
		name:  "restart before Kubernetes has spoken",
		store: func(m *model) { m.record(testLayout, 7, "me", "u") },
		first: waits, last: holds, id: 7, verbs: []verb{verbAdopt}, stored: []string{"7 me u"},
	},
	{
		name:  "record outranks the mirror",
		store: func(m *model) { m.record(testLayout, 7, "me", "u") },
		self:  identity{lastID: 3}, nodes: me("u"), first: waits, last: holds, id: 7, verbs: []verb{verbAdopt}, stored: []string{"7 me u"},
	},
	{
		name:  "re-created node takes its name's ID over",
		store: func(m *model) { m.record(testLayout, 7, "me", "old") },
		nodes: me("new"), first: waits, last: holds, id: 7, verbs: []verb{verbAdopt}, stored: []string{"7 me new"},
	},
	{
		name:  "re-created while the agent runs",
		store: func(m *model) { m.record(testLayout, 7, "me", "old") },
		self:  identity{held: 7, heldUID: "old", confirmed: true}, nodes: me("new"), first: holds, last: holds, id: 7,
		verbs: []verb{verbAdopt}, stored: []string{"7 me new"},
	},
	{
		name:  "another agent of the same name took it",
		store: func(m *model) { m.record(testLayout, 7, "me", "twin") },
		self:  identity{held: 7, heldUID: "u", confirmed: true}, nodes: me("u"), first: fence, last: fence, id: 7,
		reason: "taken over by another agent", stored: []string{"7 me twin"},
	},
	{
		name:  "UID becomes known later",
		store: func(m *model) { m.record(testLayout, 7, "me", "") },
		self:  identity{held: 7, confirmed: true}, nodes: me("u"), first: holds, last: holds, id: 7,
		verbs: []verb{verbAdopt}, stored: []string{"7 me u"},
	},
	{
		name: "data loss, held in this life", self: identity{held: 5, heldUID: "u", confirmed: true}, nodes: me("u"),
		first: waits, last: holds, id: 5, verbs: []verb{verbClaim}, stored: []string{"5 me u"},
	},
	{
		name: "data loss while Kubernetes is down", self: identity{held: 5, heldUID: "u", confirmed: true},
		first: waits, last: holds, id: 5, verbs: []verb{verbClaim}, stored: []string{"5 me u"},
	},
	{
		name: "data loss, known from the mirror", self: identity{lastID: 5, lastUID: "u"}, nodes: me("u"),
		first: waits, last: holds, id: 5, verbs: []verb{verbClaim}, stored: []string{"5 me u"},
	},
	{
		name: "mirror of another Node object", self: identity{lastID: 5, lastUID: "old"}, nodes: me("u"),
		first: waits, last: holds, id: 1, verbs: []verb{verbClaim}, stored: []string{"1 me u"},
	},
	{
		name:  "data loss, another node was quicker",
		store: func(m *model) { m.record(testLayout, 5, "b", "x") },
		self:  identity{held: 5, heldUID: "u", confirmed: true}, nodes: me("u"), first: fence, last: fence, id: 5,
		reason: "ID 5, which this node has used, is held by node b", stored: []string{"5 b x"},
	},
	{
		name:  "another node holds the mirrored ID",
		store: func(m *model) { m.record(testLayout, 5, "b", "x") },
		self:  identity{lastID: 5}, nodes: me("u"), first: fence, last: fence, id: 5, reason: "held by node b", stored: []string{"5 b x"},
	},
	{
		name: "remembered ID is garbage", store: func(m *model) { m.set(testLayout.id(5), "?") },
		self: identity{lastID: 5}, nodes: me("u"), first: fence, last: fence, id: 5, reason: "held by an undecodable record",
	},
	{
		name: "collected and out of Kubernetes", self: identity{held: 5, heldUID: "u", confirmed: true},
		nodes: nodesOf("me", node("other", "o")), first: waits, last: waits, id: 5, reason: "its ID 5 has been released",
	},
	{
		name:  "etcd restored from an old backup",
		store: func(m *model) { m.record(testLayout, 2, "me", "u") },
		self:  identity{held: 5, heldUID: "u", confirmed: true}, nodes: me("u"), first: waits, last: holds, id: 5,
		verbs: []verb{verbClaim}, stored: []string{"5 me u"},
	},
	{
		name: "name record lost",
		store: func(m *model) {
			m.record(testLayout, 4, "me", "u")
			m.drop(testLayout.name("me"))
		},
		nodes: me("u"), first: waits, last: holds, id: 4, verbs: []verb{verbAdopt}, stored: []string{"4 me u"},
	},
	{
		name: "id record lost",
		store: func(m *model) {
			m.record(testLayout, 4, "me", "u")
			m.drop(testLayout.id(4))
		},
		nodes: me("u"), first: waits, last: holds, id: 4, verbs: []verb{verbClaim}, stored: []string{"4 me u"},
	},
	{
		name: "id record damaged, name record proves it",
		store: func(m *model) {
			m.record(testLayout, 4, "me", "u")
			m.set(testLayout.id(4), "{")
		},
		nodes: me("u"), first: waits, last: holds, id: 4, verbs: []verb{verbAdopt}, stored: []string{"4 me u"},
	},
	{
		name: "name record damaged, id record proves it",
		store: func(m *model) {
			m.record(testLayout, 4, "me", "u")
			m.set(testLayout.name("me"), "{")
		},
		nodes: me("u"), first: waits, last: holds, id: 4, verbs: []verb{verbAdopt}, stored: []string{"4 me u"},
	},
	{
		name: "name record damaged, memory proves it", store: func(m *model) { m.set(testLayout.name("me"), "{") },
		self: identity{held: 4, heldUID: "u", confirmed: true}, nodes: me("u"), first: waits, last: holds, id: 4,
		verbs: []verb{verbClaim}, stored: []string{"4 me u"},
	},
	{
		name: "name record damaged, nothing proves anything", store: func(m *model) { m.set(testLayout.name("me"), "{") },
		nodes: me("u"), first: waits, last: waits, reason: "delete /troupe/v1/nodes/name/me",
	},
	{
		name: "name record has the ID of another node",
		store: func(m *model) {
			m.record(testLayout, 4, "me", "u")
			m.record(testLayout, 4, "b", "x")
		},
		nodes: me("u"), first: fence, last: fence, id: 4, reason: "held by node b", stored: []string{"4 b x"},
	},
	{
		name: "two IDs for one name",
		store: func(m *model) {
			m.record(testLayout, 9, "me", "u")
			m.record(testLayout, 4, "me", "u")
		},
		nodes: me("u"), first: waits, last: holds, id: 4, verbs: []verb{verbAdopt}, stored: []string{"4 me u"},
	},
	{
		name: "two IDs and no name record, memory decides",
		store: func(m *model) {
			m.record(testLayout, 9, "me", "u")
			m.record(testLayout, 4, "me", "u")
			m.drop(testLayout.name("me"))
		},
		self: identity{lastID: 9}, nodes: me("u"), first: waits, last: holds, id: 9, verbs: []verb{verbAdopt}, stored: []string{"9 me u"},
	},
	{
		name: "a surplus ID turns up later",
		store: func(m *model) {
			m.record(testLayout, 9, "me", "u")
			m.record(testLayout, 4, "me", "u")
		},
		self: identity{held: 4, heldUID: "u", confirmed: true}, nodes: me("u"), first: holds, last: holds, id: 4,
		verbs: []verb{verbRelease}, stored: []string{"4 me u"},
	},
}

func TestDecideClaim(t *testing.T) {
	for _, c := range claimCases {
		t.Run(c.name, func(t *testing.T) {
			m := newModel()
			if c.store != nil {
				c.store(m)
			}
			in := input{self: c.self, connected: true, keys: m.keyspace(testLayout, nil)}
			in.self.name = "me"
			if c.nodes != nil {
				in.view = in.view.next(c.nodes)
			}
			var verbs []verb
			d := decide(in)
			if d.claim != c.first {
				t.Errorf("first state is %s (%s), want %s", d.claim, d.reason, c.first)
			}
			for ; d.op != nil && len(verbs) < 5; d = decide(in) {
				verbs = append(verbs, d.op.verb)
				if !m.apply(d.op) {
					t.Fatalf("%s %s: guards do not hold on the snapshot they were made from", d.op.verb, d.op.about)
				}
				in = learn(in, d, m)
			}
			if d.claim != c.last || d.id != c.id || !strings.Contains(d.reason, c.reason) || c.reason == "" && d.reason != "" {
				t.Errorf("ends as %s, ID %d, %q; want %s, ID %d, %q", d.claim, d.id, d.reason, c.last, c.id, c.reason)
			}
			if diff := cmp.Diff(c.verbs, verbs); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.stored, storedRecords(in.keys)); diff != "" {
				t.Errorf("id records (-want +got):\n%s", diff)
			}
		})
	}
}

// learn applies a transaction that was carried out, like the loop.
func learn(in input, d decision, m *model) input {
	if d.op.verb == verbClaim || d.op.verb == verbAdopt {
		in.self.confirmed = true
	}
	in.keys = m.keyspace(testLayout, in.keys)
	if d = decide(in); d.claim == holds {
		in.self.held, in.self.heldUID = d.id, d.uid
	}
	return in
}

// storedRecords lists the decodable id records: "id name uid".
func storedRecords(k *keyspace) []string {
	var list []string
	for id := uint32(1); id < 20; id++ {
		if e := k.ids[id]; e.known && e.err == nil {
			list = append(list, fmt.Sprintf("%d %s %s", id, e.value.GetName(), e.value.GetUid()))
		}
	}
	return list
}

// TestLastGoodRecordKeepsTheClaim damages both records of a running node: the node keeps the last
// good records and repairs the damaged ones.
func TestLastGoodRecordKeepsTheClaim(t *testing.T) {
	m := newModel()
	m.record(testLayout, 4, "me", "u")
	in := input{
		self: identity{name: "me", held: 4, heldUID: "u", confirmed: true}, connected: true, keys: m.keyspace(testLayout, nil),
		view: view{}.next(me("u")),
	}
	m.set(testLayout.id(4), "{")
	m.set(testLayout.name("me"), "{")
	in.keys = m.keyspace(testLayout, in.keys)
	d := decide(in)
	if d.claim != holds || d.id != 4 || d.op == nil || d.op.verb != verbAdopt || !strings.Contains(d.reason, "undecodable") {
		t.Fatalf("damaged: got %s, ID %d, %q, operation %v; want the claim held and a repair", d.claim, d.id, d.reason, d.op)
	}
	m.apply(d.op)
	in.keys = m.keyspace(testLayout, in.keys)
	if d = decide(in); d.claim != holds || d.op != nil || d.reason != "" {
		t.Errorf("repaired: got %s, %q, operation %v; want nothing left to do", d.claim, d.reason, d.op)
	}
}

// TestFenceIsLifted: the fence ends when the other node gives the disputed ID up.
func TestFenceIsLifted(t *testing.T) {
	m := newModel()
	m.record(testLayout, 4, "b", "x")
	in := input{
		self: identity{name: "me", held: 4, confirmed: true}, connected: true, keys: m.keyspace(testLayout, nil), view: view{}.next(me("u")),
	}
	if d := decide(in); d.claim != fence || d.op != nil {
		t.Fatalf("got %s with operation %v, want a fence that writes nothing", d.claim, d.op)
	}
	m.drop(testLayout.id(4), testLayout.name("b"))
	in.keys = m.keyspace(testLayout, in.keys)
	if d := decide(in); d.claim != waits || d.op == nil || !m.apply(d.op) {
		t.Fatalf("got %s with operation %v, want the ID claimed again", d.claim, d.op)
	}
	in.keys = m.keyspace(testLayout, in.keys)
	if d := decide(in); d.claim != holds || d.id != 4 {
		t.Errorf("got %s with ID %d, want ID 4 held", d.claim, d.id)
	}
}

// TestRivalsForOneID lets two nodes decide on the same snapshot: one gets the ID, the other the
// next one.
func TestRivalsForOneID(t *testing.T) {
	m := newModel()
	nodes := nodesOf("", node("a", "ua"), node("b", "ub"))
	in := func(name string, candidates int) input {
		return input{self: identity{name: name}, connected: true, keys: m.keyspace(testLayout, nil), view: view{}.next(nodes), candidates: candidates}
	}
	first, second, several := decide(in("a", 1)), decide(in("b", 1)), decide(in("b", 4))
	if !m.apply(first.op) {
		t.Fatal("the first one lost")
	}
	if m.apply(second.op) {
		t.Fatal("both got the same ID")
	}
	if !m.apply(several.op) {
		t.Fatal("several candidates did not lead to the next ID")
	}
	if diff := cmp.Diff([]string{"1 a ua", "2 b ub"}, storedRecords(m.keyspace(testLayout, nil))); diff != "" {
		t.Errorf("id records (-want +got):\n%s", diff)
	}
}

// TestNewUIDThatCannotBeWritten creates the Node of a running agent again while the agent's write
// of the new UID fails: the node does not fence itself.
func TestNewUIDThatCannotBeWritten(t *testing.T) {
	m := newModel()
	m.record(testLayout, 1, "n1", "old")
	in := input{connected: true, keys: m.keyspace(testLayout, nil), view: view{}.next(nodesOf("n1", node("n1", "new"))), self: identity{
		name: "n1", held: 1, heldUID: "old", confirmed: true,
	}}
	for range 2 {
		d := decide(in)
		if d.claim != holds || d.op == nil {
			t.Fatalf("%s (%s), operation %v; want it held and the record written", d.claim, d.reason, d.op)
		}
		in.self.held, in.self.heldUID = d.id, d.uid
	}
}
