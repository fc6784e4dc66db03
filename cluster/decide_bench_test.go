package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// benchTown is a settled cluster as one of its nodes sees it.
func benchTown(nodes int) input {
	m := newModel()
	for i := 1; i <= nodes; i++ {
		name := fmt.Sprintf("n%d", i)
		m.record(testLayout, uint32(i), name, fmt.Sprintf("u%d", i))
		m.set(testLayout.addresses(name), `{"name":"`+name+`","vppAddresses":["10.0.0.1/24"]}`)
	}
	in := input{
		self: identity{name: "n1", held: 1, heldUID: "u1", confirmed: true}, keys: m.keyspace(testLayout, nil), connected: true,
		view: view{}.next(named("n1", nodes)), grace: time.Minute, now: time.Unix(0, 0), want: want([]string{"10.0.0.1/24"}),
	}
	in.absent = observeAbsence(nil, in.keys, in.view, "n1", in.now)
	return in
}

func BenchmarkDecide(b *testing.B) {
	const nodes = 5000
	b.Run("nothing to do", func(b *testing.B) {
		in := benchTown(nodes)
		b.ReportAllocs()
		for b.Loop() {
			if d := decide(in); d.op != nil || d.claim != holds {
				b.Fatal(d)
			}
		}
	})
	b.Run("newcomer", func(b *testing.B) {
		in := benchTown(nodes)
		in.self, in.candidates = identity{name: "new"}, 1
		in.view = view{}.next(nodesOf("new", node("new", "u")))
		b.ReportAllocs()
		for b.Loop() {
			if d := decide(in); d.op == nil {
				b.Fatal(d)
			}
		}
	})
	b.Run("half to collect", func(b *testing.B) {
		in := benchTown(nodes)
		in.view = view{}.next(named("n1", nodes/2))
		in.absent = observeAbsence(nil, in.keys, in.view, "n1", in.now)
		in.now = in.now.Add(time.Hour)
		b.ReportAllocs()
		for b.Loop() {
			if d := decide(in); d.op == nil || d.op.verb != verbCollect {
				b.Fatal(d)
			}
		}
	})
}

func BenchmarkObserveAbsence(b *testing.B) {
	in := benchTown(5000)
	b.ReportAllocs()
	for b.Loop() {
		observeAbsence(nil, in.keys, in.view, "n1", in.now)
	}
}

// BenchmarkReplaced is a list of 5,000 nodes, three keys each.
func BenchmarkReplaced(b *testing.B) {
	m := newModel()
	for i := 1; i <= 5000; i++ {
		name := fmt.Sprintf("n%d", i)
		m.record(testLayout, uint32(i), name, strings.Repeat("u", 36))
		m.set(testLayout.addresses(name), `{"name":"`+name+`","vppAddresses":["10.0.0.1/24"]}`)
	}
	pairs, empty := m.list(), newKeyspace(testLayout)
	b.ReportAllocs()
	for b.Loop() {
		empty.replaced(m.revision, pairs)
	}
}
