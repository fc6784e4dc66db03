package contract

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// drainKey is the row of drainCases.
const drainKey = "10.96.0.1:80/TCP"

// otherKey is a second row with the same backend.
const otherKey = "10.96.0.2:80/TCP"

// drainRow makes a row of hosts of which some drain.
func (h *holder) drainRow(hosts, draining []int) nat44.Row {
	h.Helper()
	r := h.row(drainKey, nat44.SelfTwiceNAT, 0, 8000, hosts)
	for _, host := range draining {
		r.Draining = append(r.Draining, nat44.Local{Addr: netip.AddrFrom4([4]byte{10, 1, 0, byte(1 + host)}), Port: 8000})
	}
	return r
}

// wants makes VPP hold the row, which must not be replaced.
func (h *holder) wants(r nat44.Row) {
	h.Helper()
	h.want.Rows[r.Key] = r
	for _, op := range h.settle(h.T, h.want) {
		if op.Verb == nat44.DelRow {
			h.Fatalf("the row is replaced: %v", op)
		}
	}
}

// spread opens connections and returns how many each host gets.
func (h *holder) spread(n int) map[int]int {
	h.Helper()
	got := map[int]int{}
	for range n / 50 {
		for _, f := range h.open(slices.Repeat([]rule.Key{key(h.T, drainKey)}, 50)...) {
			got[int(f.backend.Addr().As4()[3])-1]++
		}
	}
	return got
}

// manyDraws is how many connections show that shares are exact, each of them by its first packet.
const manyDraws = 20_000

// draw is spread for many connections, which are not looked at afterwards.
func (h *holder) draw() map[int]int {
	h.Helper()
	const batch = 200
	got := map[int]int{}
	for range manyDraws / batch {
		flows := make([]*flow, batch)
		for i := range flows {
			h.next++
			addr := netip.AddrFrom4([4]byte{198, 18, byte(h.next >> 8), byte(h.next)})
			flows[i] = &flow{row: key(h.T, drainKey), client: netip.AddrPortFrom(addr, 999)}
		}
		h.talk(flows, syn)
		for _, f := range flows {
			got[int(f.backend.Addr().As4()[3])-1]++
		}
	}
	return got
}

// fair fails the test where the counts do not fit the weights, by chi-square at 0.001.
func fair(t *testing.T, what string, got map[int]int, weights map[int]int) {
	t.Helper()
	total, sum := 0, 0
	for _, n := range got {
		total += n
	}
	for _, w := range weights {
		sum += w
	}
	squares := 0.0
	for host, n := range got {
		if weights[host] == 0 {
			t.Errorf("%s: host %d gets %d connections", what, host, n)
		}
	}
	for host, w := range weights {
		expected := float64(total*w) / float64(sum)
		squares += (float64(got[host]) - expected) * (float64(got[host]) - expected) / expected
	}
	limit := map[int]float64{1: 10.83, 2: 13.82, 3: 16.27, 106: 156.0}[len(weights)-1]
	t.Logf("%s: %d connections, chi-square %.2f, at most %.2f", what, total, squares, limit)
	if squares > limit {
		t.Errorf("%s: chi-square %.2f of %v", what, squares, got)
	}
}

var drainCases = []contractCase{
	{"drain/no new connection, and none ends", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		h.wants(h.drainRow([]int{0, 1, 2}, nil))
		fair(t, "all", h.spread(600), map[int]int{0: 1, 1: 1, 2: 1})
		h.wants(h.drainRow([]int{1, 2}, []int{0}))
		h.compare("after it drains")
		fair(t, "one drains", h.spread(600), map[int]int{1: 1, 2: 1})
		h.talk(h.flows, ack)
		h.wants(h.drainRow([]int{1}, []int{0, 2}))
		h.compare("after another one drains")
		fair(t, "two drain", h.spread(200), map[int]int{1: 1})
		h.wants(h.drainRow([]int{0, 1, 2}, nil))
		h.compare("after they are back")
		fair(t, "back", h.spread(600), map[int]int{0: 1, 1: 1, 2: 1})
		h.talk(h.flows, ack)
	}},
	{"drain/shares of 3 to 1 to 0", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		h.want.SessionLimit = 2 * manyDraws
		h.wants(h.drainRow([]int{0, 1, 2}, nil))
		shares := h.drainRow([]int{0, 1}, []int{2})
		shares.Locals[0].Weight, shares.Locals[1].Weight = 6, 2
		h.wants(shares)
		fair(t, "shares", h.draw(), map[int]int{0: 3, 1: 1})
	}},
	{"drain/shares of 1 to 1 to 1", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		h.want.SessionLimit = 2 * manyDraws
		h.wants(h.drainRow([]int{0, 1, 2}, nil))
		fair(t, "shares", h.draw(), map[int]int{0: 1, 1: 1, 2: 1})
	}},
	{"drain/20 of 127", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		h.want.SessionLimit = 2 * manyDraws
		all := make([]int, nat44.MaxBackends)
		weights := map[int]int{}
		for i := range all {
			all[i] = i
			weights[i] = 1
		}
		h.wants(h.drainRow(all, nil))
		h.spread(1000)
		order := rand.New(rand.NewPCG(1, 2)).Perm(len(all))
		draining := slices.Sorted(slices.Values(order[:20]))
		for _, i := range draining {
			delete(weights, i)
		}
		h.wants(h.drainRow(slices.Sorted(slices.Values(order[20:])), draining))
		h.compare("after they drain")
		fair(t, "107 left", h.draw(), weights)
		h.talk(h.flows, ack)
	}},
	{"drain/a row grows and fills up again", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		h.wants(h.drainRow([]int{0, 1}, nil))
		h.spread(100)
		for n := 2; n < 40; n++ {
			h.wants(h.drainRow([]int{n, n + 1}, slices.Sorted(slices.Values(rand.New(rand.NewPCG(1, 2)).Perm(n)))))
			h.compare("after a step")
			fair(t, "the new ones", h.spread(100), map[int]int{n: 1, n + 1: 1})
		}
	}},
	{"drain/all of them: nothing new, and none ends", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		h.wants(h.drainRow([]int{0, 1, 2}, nil))
		h.spread(100)
		h.wants(h.drainRow(nil, []int{0, 1, 2}))
		h.compare("after they drain")
		h.talk(h.flows, ack)
		knock := &flow{row: key(t, drainKey), client: netip.MustParseAddrPort("198.18.9.9:999")}
		if got := h.traffic.exchange(t, []packet{h.request(knock, syn)}); len(got) > 0 {
			t.Errorf("a new connection arrives: %v", got)
		}
		h.wants(h.drainRow([]int{1}, []int{0, 2}))
		fair(t, "one is back", h.spread(100), map[int]int{1: 1})
		h.talk(h.flows, ack)
		again := h.traffic.exchange(t, []packet{h.request(knock, syn)})
		if len(again) != 1 {
			t.Errorf("the client that was refused is not served now: %v", again)
		}
	}},
	{"drain/an endpoint that goes ends its own only", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		h.wants(h.drainRow([]int{0, 1, 2}, nil))
		h.spread(100)
		h.wants(h.drainRow([]int{1, 2}, []int{0}))
		ended := h.change("it goes", func(w *nat44.Want) { w.Rows[key(t, drainKey)] = h.drainRow([]int{1, 2}, nil) })
		if len(ended) == 0 {
			t.Fatal("no connection has ended")
		}
		h.stale(ended)
		h.talk(h.flows, ack)
	}},
	{"drain/with affinity the client's records count", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		r := h.row(drainKey, nat44.SelfTwiceNAT, 600, 8000, []int{0, 1})
		h.wants(r)
		flows := h.open(r.Key)
		drains := r
		drains.Locals = slices.DeleteFunc(slices.Clone(r.Locals), func(l nat44.Local) bool { return l.Addr == flows[0].backend.Addr() })
		drains.Draining = []nat44.Local{{Addr: flows[0].backend.Addr(), Port: 8000}}
		h.wants(drains)
		h.talk(h.flows, ack)
		again := &flow{row: r.Key, client: netip.AddrPortFrom(flows[0].client.Addr(), 7)}
		h.handshake([]*flow{again})
		if again.backend != flows[0].backend {
			t.Errorf("the client goes to %v, with a record of %v", again.backend, flows[0].backend)
		}
	}},
	{"drain/the same port of a client at two rows with a backend in common", func(t *testing.T, v *rig) {
		h, first := twoRows(t, v)
		again := &flow{row: key(t, otherKey), client: first.client}
		request := h.request(again, syn)
		if got := h.traffic.exchange(t, []packet{request})[request.id]; got.dst != first.backend || got.src != first.client {
			t.Errorf("the second connection arrives at %v from %v, want as the first one", got.dst, got.src)
		}
		answer := h.answer(first, ack)
		if back := h.traffic.exchange(t, []packet{answer})[answer.id]; back.src != netip.AddrPortFrom(again.row.Addr, again.row.Port) {
			t.Errorf("the answer comes from %v, want from the row of the second connection", back.src)
		}
	}},
	{"drain/a port again leads to the same backend, which drains", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		h.wants(h.drainRow([]int{0}, nil))
		first := h.open(key(t, drainKey))[0]
		h.talk([]*flow{first}, fin|ack) // both sides close it
		h.talk([]*flow{first}, ack)
		h.wants(h.drainRow([]int{1}, []int{0}))
		again := &flow{row: first.row, client: first.client}
		request := h.request(again, syn)
		if got := h.traffic.exchange(t, []packet{request})[request.id]; got.dst != first.backend {
			t.Errorf("a connection from the port of a closed one arrives at %v, want %v", got.dst, first.backend)
		}
	}},
}

// twoRows are two rows with one backend, and a flow through the first.
func twoRows(t *testing.T, v *rig) (*holder, *flow) {
	h := newHolder(t, v, 1)
	h.want.Rows[key(t, drainKey)] = h.drainRow([]int{0}, nil)
	h.want.Rows[key(t, otherKey)] = h.row(otherKey, nat44.SelfTwiceNAT, 0, 8000, []int{0})
	h.settle(h.T, h.want)
	return h, h.open(key(t, drainKey))[0]
}
