package contract

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// newSweeper is a holder whose timeouts tell established connections from others.
func newSweeper(t *testing.T, v *rig) *holder {
	h := newHolder(t, v, 1)
	h.want.Timeouts = nat44.Timeouts{UDP: 300, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 60}
	return h
}

// sweep makes sweeps until all is reached, and returns the live sessions of each backend and the
// number of deletions.
func (h *holder) sweep(w sessions.Wish, s sessions.Slice) (live map[netip.AddrPort]sessions.Live, deleted int) {
	h.Helper()
	live, w.EndedAfter = map[netip.AddrPort]sessions.Live{}, max(w.EndedAfter, time.Second)
	for turn := (netip.Addr{}); ; {
		r := sessions.Sweep(h.T.Context(), h.link, w, turn, s)
		if r.Err != nil || r.Errors+r.Gone > 0 {
			h.Fatalf("sweep: %+v", r)
		}
		for at, n := range r.Live {
			live[at] = n
		}
		deleted += r.Deleted
		if turn = r.Turn; !turn.IsValid() {
			return live, deleted
		}
	}
}

// quiet waits until all sessions have been silent for so long, as VPP counts.
func (h *holder) quiet(d time.Duration) {
	h.Helper()
	waitFor(h.T, "silence", func() bool {
		for _, s := range h.sessions() {
			if s.TimeSinceLastHeard < uint64(d/time.Second) {
				return false
			}
		}
		return true
	})
}

// closes closes connections from the client's side, and returns them without their backends.
func (h *holder) closes(flows []*flow) (again []*flow) {
	h.Helper()
	h.talk(flows, fin|ack)
	h.talk(flows, ack)
	for _, f := range flows {
		again = append(again, &flow{row: f.row, client: f.client})
	}
	h.flows = slices.DeleteFunc(h.flows, func(f *flow) bool { return slices.Contains(flows, f) })
	return again
}

// anywhere is a backend for the wish.
func anywhere(host int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(1 + host)}), 8000)
}

var sweepCases = []contractCase{
	{"sweep/sessions as text", func(t *testing.T, v *rig) {
		h := newSweeper(t, v)
		web := h.row("10.96.0.1:80/TCP", nat44.TwiceNAT, 0, 8000, []int{0})
		dns := h.row("10.96.0.2:53/UDP", nat44.SelfTwiceNAT, 0, 8000, []int{0})
		h.want.Rows[web.Key], h.want.Rows[dns.Key] = web, dns
		h.settle(t, h.want)
		h.open(web.Key, dns.Key)
		for filter, want := range map[string]string{
			"filter o2i daddr 10.96.0.1": `NAT44 ED sessions:
-------- thread 0 vpp_main: 2 sessions --------
    i2o 10.1.0.1 proto TCP port 8000 fib 0
    o2i 10.96.0.1 proto TCP port 80 fib 0
       external host o2i 198.18.0.1:20001 i2o 10.255.255.254:N
       index N
       last heard N
       timeout in N
       total pkts 4, total bytes N
       static translation
       load-balancing
       twice-nat

Showed: 1, Filtered: 1 of total 2 sessions of thread 0

`,
			"filter i2o saddr 10.1.0.1 filter i2o daddr 198.18.0.2": `NAT44 ED sessions:
-------- thread 0 vpp_main: 2 sessions --------
    i2o 10.1.0.1 proto UDP port 8000 fib 0
    o2i 10.96.0.2 proto UDP port 53 fib 0
       external host 198.18.0.2:20002
       index N
       last heard N
       timeout in N
       total pkts 4, total bytes N
       static translation
       load-balancing

Showed: 1, Filtered: 1 of total 2 sessions of thread 0

`,
		} {
			text := ask[*vlib.CliInbandReply](t, v, &vlib.CliInband{Cmd: "show nat44 sessions " + filter}).Reply
			if n := v.workers(t); n > 1 { // the first worker has the sessions
				text = regexp.MustCompile(`-------- thread \d+ \S+: 0 sessions --------\nShowed: 0, .*\n\n`).ReplaceAllString(text, "")
				text = strings.NewReplacer("thread 1 vpp_wk_0", "thread 0 vpp_main", "of thread 1", "of thread 0").Replace(text)
			}
			text = regexp.MustCompile(`(?m)^ *(i2o|o2i) flow: .*\n`).ReplaceAllString(text, "")
			text = regexp.MustCompile(`(index|last heard|timeout in|total bytes|10.255.255.254:) ?[0-9.]+`).ReplaceAllStringFunc(text, func(s string) string {
				return regexp.MustCompile(` ?[0-9.]+$`).ReplaceAllString(s, map[bool]string{true: "N", false: " N"}[s[0] == '1'])
			})
			check(t, filter, want, text)
		}
	}},
	{"sweep/a port of an ended connection gets a backend that serves", func(t *testing.T, v *rig) {
		h := newSweeper(t, v)
		h.wants(h.drainRow([]int{0, 1}, nil))
		row := key(t, drainKey)
		flows := h.open(slices.Repeat([]rule.Key{row}, 200)...)
		var held, half, ended []*flow
		for i, f := range flows {
			if f.backend == anywhere(0) {
				[]func(){func() { held = append(held, f) }, func() { half = append(half, f) }, func() { ended = append(ended, f) }}[i%3]()
			}
		}
		again := h.closes(ended)
		h.talk(half, fin|ack)
		h.wants(h.drainRow([]int{1}, []int{0}))
		wish := sessions.Wish{Draining: []netip.AddrPort{anywhere(0)}, EndedAfter: 4 * time.Second}
		h.quiet(wish.EndedAfter + time.Second)
		h.talk(half, ack) // they are not silent
		slice := sessions.Slice{Deletions: 1000, Dumps: 8}
		live, deleted := h.sweep(wish, slice)
		check(t, "live while it serves", map[netip.AddrPort]sessions.Live{anywhere(0): {row: len(held) + len(half)}}, live)
		check(t, "deleted while it serves", 0, deleted)
		wish.Gone = map[netip.AddrPort]map[rule.Key]bool{anywhere(0): {row: true}}
		_, deleted = h.sweep(wish, slice)
		check(t, "deleted", len(ended), deleted)
		h.handshake(again)
		for _, f := range again {
			if f.backend != anywhere(1) {
				t.Errorf("%v reaches %v", f.client, f.backend)
			}
		}
		h.talk(h.flows, ack)
	}},
	{"sweep/a half-closed connection looks like a closed one, and lives as long as the agent is told", func(t *testing.T, v *rig) {
		h := newSweeper(t, v)
		h.wants(h.drainRow([]int{0}, nil))
		row := key(t, drainKey)
		flows := h.open(slices.Repeat([]rule.Key{row}, 4)...)
		// client -> endpoint, endpoint -> client, ...: as many packets of each direction
		for i, flags := range [][4]byte{
			{fin | ack, ack, ack, ack},       // by the client alone, which confirms an answer
			{fin | ack, fin | ack, ack, ack}, // by both
			{ack, fin | ack, ack, ack},       // by the endpoint alone, which confirms a request
			{ack, fin | ack, fin | ack, ack}, // by both, the endpoint first
		} {
			for n, flag := range flags {
				p := h.request(flows[i], flag)
				if n%2 == 1 {
					p = h.answer(flows[i], flag)
				}
				if len(h.traffic.exchange(t, []packet{p})) != 1 {
					t.Fatalf("packet %d of connection %d is lost", n, i)
				}
			}
		}
		h.wants(h.drainRow([]int{1}, []int{0}))
		wish := sessions.Wish{Draining: []netip.AddrPort{anywhere(0)}, Gone: map[netip.AddrPort]map[rule.Key]bool{anywhere(0): {row: true}}}
		text := ask[*vlib.CliInbandReply](t, v, &vlib.CliInband{Cmd: "show nat44 sessions filter i2o saddr 10.1.0.1"}).Reply
		text = regexp.MustCompile(`(?m)^ +((i2o|o2i) flow:|external host|index|last heard) .*\n`).ReplaceAllString(text, "")
		seen := map[string]int{}
		for _, one := range regexp.MustCompile(`(?s) i2o 10.1.0.1 .*?load-balancing\n`).FindAllString(text, -1) {
			seen[regexp.MustCompile(`timeout in 2[34]\d\.\d\d`).ReplaceAllString(one, "timeout in N")]++
		}
		check(t, "sessions as VPP shows them", map[string]int{` i2o 10.1.0.1 proto TCP port 8000 fib 0
    o2i 10.96.0.1 proto TCP port 80 fib 0
       timeout in N
       total pkts 8, total bytes 384
       static translation
       load-balancing
`: 4}, seen)
		h.quiet(2 * time.Second)
		slice := sessions.Slice{Deletions: 1000, Dumps: 8}
		wish.EndedAfter = time.Hour
		live, deleted := h.sweep(wish, slice)
		check(t, "live", map[netip.AddrPort]sessions.Live{anywhere(0): {row: 4}}, live)
		check(t, "deleted", 0, deleted)
		h.talk(flows, ack)
		h.quiet(2 * time.Second)
		wish.EndedAfter = time.Second
		_, deleted = h.sweep(wish, slice)
		check(t, "deleted after a second", 4, deleted)
	}},
	{"sweep/five endpoints are rolled under 200 ports that are used again", func(t *testing.T, v *rig) { rolled(t, v, 0) }},
	{"sweep/five endpoints are rolled under 200 ports that are used again, with affinity", func(t *testing.T, v *rig) { rolled(t, v, 600) }},
	{"sweep/with the outside role alone open connections are not told from ended ones", func(t *testing.T, v *rig) {
		h := newSweeper(t, v)
		h.want.OtherProtocols = map[uint32]bool{uint32(h.backends): true}
		h.wants(h.drainRow([]int{0}, nil))
		row := key(t, drainKey)
		held := h.open(slices.Repeat([]rule.Key{row}, 10)...)
		h.wants(h.drainRow([]int{1}, []int{0}))
		h.quiet(2 * time.Second)
		wish := sessions.Wish{Draining: []netip.AddrPort{anywhere(0)}, Gone: map[netip.AddrPort]map[rule.Key]bool{anywhere(0): {row: true}}}
		wish.Blind = map[netip.Addr]bool{anywhere(0).Addr(): true}
		live, deleted := h.sweep(wish, sessions.Slice{Deletions: 1000, Dumps: 8})
		check(t, "live", map[netip.AddrPort]sessions.Live{anywhere(0): {row: 10}}, live)
		check(t, "deleted", 0, deleted)
		h.talk(held, ack)
		h.quiet(2 * time.Second)
		wish.Blind = nil
		_, deleted = h.sweep(wish, sessions.Slice{Deletions: 1000, Dumps: 8})
		check(t, "deleted where the agent does not know of the role", 10, deleted)
	}},
	{"sweep/UDP flows move and TCP connections to the same port live", func(t *testing.T, v *rig) {
		h := newSweeper(t, v)
		tcp, udp, other := key(t, "10.96.0.1:53/TCP"), key(t, "10.96.0.1:53/UDP"), key(t, "10.96.0.2:53/UDP")
		for _, k := range []rule.Key{tcp, udp, other} {
			h.want.Rows[k] = h.row(k.String(), nat44.SelfTwiceNAT, 0, 8000, []int{0, 1})
		}
		h.settle(t, h.want)
		flows := h.open(slices.Repeat([]rule.Key{tcp, udp, other}, 60)...)
		for _, k := range []rule.Key{tcp, udp} {
			r := h.row(k.String(), nat44.SelfTwiceNAT, 0, 8000, []int{1})
			r.Draining = []nat44.Local{{Addr: anywhere(0).Addr(), Port: 8000}}
			h.want.Rows[k] = r
		}
		h.settle(t, h.want)
		var moves, stay []*flow
		for _, f := range flows {
			if f.backend == anywhere(0) && f.row == udp {
				moves = append(moves, f)
			} else {
				stay = append(stay, f)
			}
		}
		_, deleted := h.sweep(sessions.Wish{
			Draining: []netip.AddrPort{anywhere(0)}, Gone: map[netip.AddrPort]map[rule.Key]bool{anywhere(0): {tcp: true, udp: true}},
		}, sessions.Slice{Deletions: 7, Dumps: 8})
		if deleted > len(moves) || deleted == 0 {
			t.Errorf("%d deletions of %d flows", deleted, len(moves))
		}
		h.sweep(sessions.Wish{
			Draining: []netip.AddrPort{anywhere(0)}, Gone: map[netip.AddrPort]map[rule.Key]bool{anywhere(0): {tcp: true, udp: true}},
		}, sessions.Slice{Deletions: 1000, Dumps: 8})
		h.flows = stay
		h.compare("after the sweep")
		for _, f := range moves {
			f.backend, f.seen = netip.AddrPort{}, netip.AddrPort{}
		}
		h.handshake(moves)
		for _, f := range moves {
			if f.backend != anywhere(1) {
				t.Errorf("%v reaches %v", f.client, f.backend)
			}
		}
		h.talk(stay, ack)
	}},
	{"sweep/affinity counts from the last packet", func(t *testing.T, v *rig) {
		h := newSweeper(t, v)
		row := h.row(drainKey, nat44.SelfTwiceNAT, 3, 8000, []int{0, 1, 2, 3})
		row.Remembered = 1
		h.wants(row)
		flows := h.open(slices.Repeat([]rule.Key{row.Key}, 40)...)
		before := map[netip.Addr]netip.AddrPort{}
		for _, f := range flows {
			before[f.client.Addr()] = f.backend
		}
		kept := flows[:10]
		h.closes(flows[10:])
		wish := sessions.Wish{
			Sticky: map[rule.Key]time.Duration{row.Key: 3 * time.Second}, Backends: []netip.AddrPort{anywhere(0), anywhere(1), anywhere(2), anywhere(3)},
		}
		_, deleted := h.sweep(wish, sessions.Slice{Deletions: 1000, Dumps: 8})
		check(t, "deleted at once", 0, deleted)
		waitFor(t, "their end", func() bool {
			_, n := h.sweep(wish, sessions.Slice{Deletions: 1000, Dumps: 8})
			deleted += n
			return deleted == 30
		})
		moved := func(when string, flows []*flow) (n int) {
			var again []*flow
			for _, f := range flows {
				again = append(again, &flow{row: f.row, client: netip.AddrPortFrom(f.client.Addr(), f.client.Port()-1)})
			}
			h.handshake(again)
			for _, f := range again {
				if f.backend != before[f.client.Addr()] {
					n++
				}
			}
			h.Logf("%s: %d of %d clients get another backend", when, n, len(flows))
			return n
		}
		h.quiet(5 * time.Second) // VPP has forgotten the clients
		if n := moved("closed", flows[10:]); n < 10 {
			t.Errorf("%d clients get another backend", n)
		}
		if n := moved("open", kept); n != 0 {
			t.Errorf("%d clients with a connection get another backend", n)
		}
		h.talk(h.flows, ack)
	}},
	{"sweep/many sessions are read without a command", func(t *testing.T, v *rig) {
		h := newSweeper(t, v)
		h.want.SessionLimit = 30000
		udp := h.row("10.96.0.1:53/UDP", nat44.SelfTwiceNAT, 0, 8000, []int{0, 1})
		h.want.Rows[udp.Key] = udp
		h.settle(t, h.want)
		for range 55 {
			h.draws(udp.Key, 400)
		}
		live, deleted := h.sweep(sessions.Wish{
			Draining: []netip.AddrPort{anywhere(0)}, Gone: map[netip.AddrPort]map[rule.Key]bool{anywhere(0): {udp.Key: true}},
		}, sessions.Slice{Deletions: 20000, Dumps: 8})
		if n := len(dump[*nat44_ed.Nat44UserSessionV3Details](t, v, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: anywhere(0).Addr().As4()})); n != 0 || deleted < 10_000 {
			t.Errorf("%d deleted, %d sessions left, %v live", deleted, n, fmt.Sprint(live))
		}
	}},
}

// rolled replaces five backends one after the other. Before each step and after it the same 200
// ports connect and close; some connections are held. With affinity VPP has no way to take a
// backend from a row, which is replaced.
func rolled(t *testing.T, v *rig, affinity uint32) {
	h := newSweeper(t, v)
	ports := make([]netip.AddrPort, 200)
	for i := range ports {
		ports[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, 200, byte(i % 20)}), uint16(30000+i))
	}
	wish := sessions.Wish{Gone: map[netip.AddrPort]map[rule.Key]bool{}}
	var held []*flow
	for step := range 6 {
		hosts := []int{step, step + 1, step + 2, step + 3, step + 4}
		r := h.row(drainKey, nat44.SelfTwiceNAT, affinity, 8000, hosts)
		if gone := step - 1; gone >= 0 && affinity == 0 {
			for n := range step {
				r.Draining = append(r.Draining, nat44.Local{Addr: anywhere(n).Addr(), Port: 8000})
			}
			wish.Draining = append(wish.Draining, anywhere(gone))
			wish.Gone[anywhere(gone)] = map[rule.Key]bool{r.Key: true}
		}
		h.want.Rows[r.Key] = r
		h.settle(t, h.want)
		if affinity > 0 {
			held = nil
		} else if step > 0 {
			h.quiet(2 * time.Second)
			h.sweep(wish, sessions.Slice{Deletions: 1000, Dumps: 8})
		}
		again := make([]*flow, len(ports))
		for i, port := range ports {
			again[i] = &flow{row: r.Key, client: port}
		}
		h.handshake(again)
		for _, f := range again {
			if !slices.ContainsFunc(r.Locals, func(l nat44.Local) bool { return l.Addr == f.backend.Addr() }) {
				t.Errorf("step %d: %v reaches %v", step, f.client, f.backend)
			}
		}
		h.closes(again)
		h.talk(held, ack)
		held = append(held, h.open(slices.Repeat([]rule.Key{r.Key}, 10)...)...)
	}
}

// draws sends the first packets of so many flows.
func (h *holder) draws(k rule.Key, n int) {
	h.Helper()
	packets := make([]packet, n)
	for i := range packets {
		h.next++
		packets[i] = h.request(&flow{row: k, client: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(h.next >> 8), byte(h.next)}), 999)}, syn)
	}
	h.traffic.exchange(h.T, packets)
}
