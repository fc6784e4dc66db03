package actors

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

var seeds = flag.Int("seeds", 0, "how many seeds the simulated worlds run; 0 = a few seconds' worth")

// campaign is how many seeds to run: so many, fewer with the race detector, or as many as are asked for.
func campaign(n int) int {
	if *seeds > 0 {
		return *seeds
	}
	return max(n/slow, 3)
}

// edge is where a message arrives: the kind of the actor and the type of the message.
type edge struct{ kind, message string }

// mishap is what happens to messages in a house.
type mishap struct {
	at     edge
	nth    int    // which message of the edge it is about, from 1
	kind   string // see mishaps
	seen   map[edge]int
	struck bool
}

// mishaps are the things that may happen to a message.
var mishaps = []string{
	"lost",         // it never arrives
	"twice",        // it arrives once more
	"late",         // it arrives after two seconds, overtaken by others
	"crash before", // its receiver dies of it
	"crash after",  // its receiver dies when it has done and sent everything
}

// strikes counts a message and reports whether it is the one.
func (m *mishap) strikes(kind string, msg any) bool {
	e := edge{kind, strings.TrimPrefix(reflect.TypeOf(msg).String(), "*messages.")}
	if strings.Contains(e.message, ".") {
		return false // timers and results of own work do not travel
	}
	m.seen[e]++
	hit := !m.struck && e == m.at && m.seen[e] == m.nth
	m.struck = m.struck || hit
	return hit
}

// victim is an actor whose messages suffer a mishap.
type victim struct {
	runtime.Behaviour
	kind string
	m    *mishap
}

// delayed is a message that was held back.
type delayed struct{ msg any }

func (v *victim) Receive(c *runtime.Context, msg any) {
	if d, ok := msg.(*delayed); ok {
		v.Behaviour.Receive(c, d.msg)
		return
	}
	if strings.HasPrefix(v.m.kind, "crash") || !v.m.strikes(v.kind, msg) {
		v.Behaviour.Receive(c, msg)
		return
	}
	switch v.m.kind {
	case "twice":
		v.Behaviour.Receive(c, msg)
		v.Behaviour.Receive(c, msg)
	case "late":
		c.After(2*time.Second, &delayed{msg})
	}
}

// suffer builds a house in which the mishap will happen.
func suffer(t *testing.T, seed uint64, m *mishap, play func(h *house)) {
	t.Helper()
	m.seen = map[edge]int{}
	inHouse(t, seed, func(h *house, o *runtime.Options) {
		h.deps.wrap = func(kind string, b runtime.Behaviour) runtime.Behaviour {
			return &victim{b, kind, m}
		}
		if !strings.HasPrefix(m.kind, "crash") {
			return
		}
		phase := map[string]runtime.Phase{"crash before": runtime.Before, "crash after": runtime.After}[m.kind]
		o.Faults = func(box *runtime.Mailbox, msg any, p runtime.Phase) {
			if p == phase && m.strikes(box.Kind(), msg) {
				panic("mishap")
			}
		}
	}, play)
}

// life is everything that happens to a house in this test: each kind of message travels at least once.
func life(h *house) {
	kill := func(path string) {
		_ = h.sys.Kill(path) // it may be down because of the mishap
		h.run(300 * time.Millisecond)
	}
	h.serve("web", "10.96.0.10", "10.1.1.2", "10.1.2.9")
	h.serve("db", "10.96.0.11", "10.1.1.3")
	h.serve("old", "10.96.0.12", "10.1.1.4")
	h.restrict("web", "192.0.2.0/24")
	h.run(5 * time.Second)
	h.serve("web", "10.96.0.10", "10.1.1.2", "10.1.1.5")
	h.restrict("db", "192.0.2.0/25", "10.0.0.0/8")
	h.cluster.change(func() { delete(h.cluster.services, "ns/old") })
	h.run(3 * time.Second)
	h.cluster.change(func() {
		h.cluster.node = testNodeObject()
		h.cluster.node.Addresses = []string{"172.30.1.1"}
	})
	h.serve("new", "10.96.0.13", "10.1.1.2")
	h.run(3 * time.Second)
	kill(PathRenderer(nat))
	h.cluster.change(func() { delete(h.cluster.services, "ns/db") })
	kill(PathRegistry)
	h.serve("web", "10.96.0.10", "10.1.1.4")
	h.restrict("web", "198.51.100.0/24")
	kill(PathIntrospect)
	kill(PathService("ns/new"))
	h.run(3 * time.Second)                          // a registry that was not answered asks again
	deaf, _ := h.sys.Mailbox(PathService("ns/web")) // it neither takes its spec nor speaks for the epoch
	deaf.Hold()
	h.serve("web", "10.96.0.10", "10.1.1.3")
	kill(PathRenderer(nat))
	h.run(3 * time.Second)
	deaf.Release()
	kill(PathServices)
	kill(PathInterfaces)
	h.wire.crash()
	h.run(500 * time.Millisecond)
	h.serve("web", "10.96.0.10", "10.1.1.4", "10.1.1.5")
	h.wire.connect()
	h.run(3 * time.Second)
}

// restrict gives a service an address that only clients from some networks may reach.
func (h *house) restrict(name string, sources ...string) {
	h.cluster.change(func() {
		s := proto.Clone(h.cluster.services["ns/"+name]).(*messages.Service)
		s.Type, s.SourceRanges = messages.ServiceType_LOAD_BALANCER, sources
		s.LoadBalancer = []*messages.LoadBalancerIngress{{Ip: "203.0.113.9"}}
		h.cluster.services["ns/"+name] = s
	})
}

// edgesOfLife is the life without a mishap; it counts the messages.
func edgesOfLife(t *testing.T) map[edge]int {
	m := &mishap{kind: "crash before"} // of no edge: it only counts
	suffer(t, 1, m, func(h *house) {
		life(h)
		h.settle(time.Minute)
		h.quiet()
	})
	return m.seen
}

// TestAnyMessageMayBeLost takes one message of every type at every receiver after the other, and loses it, repeats it, delays it, or has its
// receiver die of it. In the end VPP holds what it should, everybody knows it, and nothing is left to do.
func TestAnyMessageMayBeLost(t *testing.T) {
	edges := edgesOfLife(t)
	if len(edges) < 50 || edges[edge{"registry", "Missing"}] == 0 || edges[edge{"services", "Nudge"}] == 0 {
		t.Errorf("only %d edges: %v", len(edges), edges)
	}
	runs := 0
	for _, e := range slices.SortedFunc(maps.Keys(edges), func(a, b edge) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		t.Run(e.kind+" "+e.message, func(t *testing.T) {
			for i, kind := range mishaps {
				if !possible(e, kind) {
					continue
				}
				for _, nth := range chosen(edges[e], i) {
					runs++
					if !t.Run(fmt.Sprintf("%s, number %d", kind, nth), func(t *testing.T) {
						suffer(t, uint64(nth), &mishap{at: e, nth: nth, kind: kind}, func(h *house) {
							life(h)
							h.settle(3 * time.Minute)
						})
					}) {
						return
					}
				}
			}
		})
	}
	t.Logf("%d edges, %d lives", len(edges), runs)
}

// possible leaves out what cannot happen: supervisors and what an actor's own goroutine tells it can only be lost with the actor.
func possible(e edge, kind string) bool {
	if strings.HasPrefix(kind, "crash") {
		return true
	}
	own := map[edge]bool{{"link", "LinkState"}: true, {"nodes", "ClusterState"}: true}
	supervisors := map[string]bool{"root": true, "dataplane": true, "world": true, "services": true}
	return !own[e] && !supervisors[e.kind]
}

// chosen are the messages of an edge that suffer: the first one, and another one, each time a different one. With -seeds it is all of them.
func chosen(n, i int) []int {
	if *seeds > 0 {
		all := make([]int, n)
		for k := range all {
			all[k] = k + 1
		}
		return all[:min(n, *seeds)]
	}
	if n == 1 || slow > 1 {
		return []int{1 + i%n}
	}
	return []int{1, 2 + i%(n-1)}
}
