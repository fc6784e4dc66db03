package contract

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// flow is an open TCP connection, or a UDP exchange, through a row.
type flow struct {
	row    rule.Key
	client netip.AddrPort
	// backend is where it leads, and seen what the client looks like from there; both invalid
	// until the first packet has arrived.
	backend, seen netip.AddrPort
	// session is its entry in VPP, and packets their number at the last dump.
	session sessionID
	packets uint32
	// first says that it was opened before the first change.
	first bool
}

// sessionID identifies a session.
type sessionID struct {
	outside, inside, client, masked netip.AddrPort
	proto                           uint16
}

func (id sessionID) String() string {
	return fmt.Sprintf("%v > %v/%d to %v as %v", id.client, id.outside, id.proto, id.inside, id.masked)
}

// holder has flows open through a VPP.
type holder struct {
	*rig
	*testing.T
	traffic           traffic
	clients, backends interface_types.InterfaceIndex
	random            *rand.Rand
	want              *nat44.Want
	flows             []*flow
	next              uint64
	// counts of what has been seen, by name.
	counts map[string]int
}

// newHolder makes an empty VPP with clients on one interface and backends on another one.
func newHolder(t *testing.T, v *rig, seed uint64) *holder {
	t.Helper()
	h := &holder{
		rig: v, T: t, traffic: v.Traffic(t, v), random: rand.New(rand.NewPCG(seed, 7)), counts: map[string]int{},
		want: &nat44.Want{Rows: map[rule.Key]nat44.Row{}, Interfaces: map[uint32]bool{}},
	}
	h.clients, h.backends = h.traffic.port(t, false), h.traffic.port(t, false)
	for prefix, index := range map[string]interface_types.InterfaceIndex{"198.18.0.0/15": h.clients, "10.1.0.0/16": h.backends} {
		v.expect(t, ok, up(index))
		v.expect(t, ok, address(t, index, fmt.Sprintf("172.16.0.%d/32", index)))
		v.expect(t, ok, route(t, prefix, via(index, [4]byte{})))
		h.want.Interfaces[uint32(index)] = true
	}
	h.want.TwiceNAT = netip.MustParseAddr("10.255.255.254")
	h.want.SessionLimit = 10000
	h.want.Timeouts = nat44.Timeouts{UDP: 7200, TCPEstablished: 7200, TCPTransitory: 7200, ICMP: 60}
	return h
}

// request makes the next packet of a flow, and answer what the backend sends back.
func (h *holder) request(f *flow, flags byte) packet {
	h.next++
	return packet{port: h.clients, id: h.next, src: f.client, dst: netip.AddrPortFrom(f.row.Addr, f.row.Port), proto: f.row.Proto, flags: protoFlags(f.row.Proto, flags)}
}

func (h *holder) answer(f *flow, flags byte) packet {
	h.next++
	return packet{port: h.backends, id: h.next, src: f.backend, dst: f.seen, proto: f.row.Proto, flags: protoFlags(f.row.Proto, flags)}
}

// talk sends a packet over each flow and its answer, and reports every one that does not arrive
// where it belongs. Flows that lead nowhere yet learn where.
func (h *holder) talk(flows []*flow, flags byte) {
	h.Helper()
	requests, answers := make([]packet, len(flows)), make([]packet, 0, len(flows))
	for i, f := range flows {
		requests[i] = h.request(f, flags)
	}
	arrived := h.traffic.exchange(h.T, requests)
	for i, f := range flows {
		got, found := arrived[requests[i].id]
		if !found && !f.backend.IsValid() {
			h.Fatalf("the first request %v got lost", requests[i])
		}
		if found && !f.backend.IsValid() {
			f.backend, f.seen = got.dst, got.src
		}
		if !found || got.port != h.backends || got.dst != f.backend || got.src != f.seen {
			h.Errorf("request %v: arrived %v, as %v; want %v > %v", requests[i], found, got, f.seen, f.backend)
		}
		answers = append(answers, h.answer(f, flags|ack))
	}
	arrived = h.traffic.exchange(h.T, answers)
	for i, f := range flows {
		got, found := arrived[answers[i].id]
		if want := netip.AddrPortFrom(f.row.Addr, f.row.Port); !found || got.port != h.clients || got.src != want || got.dst != f.client {
			h.Errorf("answer %v: arrived %v, as %v; want %v > %v", answers[i], found, got, want, f.client)
		}
	}
	h.counts["packets and answers exchanged"] += len(flows)
}

// open opens flows through rows, each from a client of its own.
func (h *holder) open(rows ...rule.Key) []*flow {
	h.Helper()
	opened := make([]*flow, len(rows))
	for i, k := range rows {
		h.next++
		addr := netip.AddrFrom4([4]byte{198, 18, byte(h.next >> 8), byte(h.next)})
		opened[i] = &flow{row: k, client: netip.AddrPortFrom(addr, uint16(20000+h.next%40000))}
	}
	h.handshake(opened)
	return opened
}

// handshake opens flows that lead nowhere yet.
func (h *holder) handshake(flows []*flow) {
	h.Helper()
	if len(flows) == 0 {
		return
	}
	h.talk(flows, syn)
	h.talk(flows, ack)
	h.flows = append(h.flows, flows...)
	h.counts["sessions opened"] += len(flows)
	sessions := h.sessions()
	for _, f := range flows {
		for id, d := range sessions {
			if id.client == f.client && id.outside.Addr() == f.row.Addr {
				f.session, f.packets = id, d.TotalPkts
			}
		}
	}
}

// sessions reads all sessions of VPP, by every address that has some.
func (h *holder) sessions() map[sessionID]*nat44_ed.Nat44UserSessionV3Details {
	h.Helper()
	all := map[sessionID]*nat44_ed.Nat44UserSessionV3Details{}
	for _, user := range dump[*nat44_ed.Nat44UserDetails](h.T, h.rig, &nat44_ed.Nat44UserDump{}) {
		for _, d := range dump[*nat44_ed.Nat44UserSessionV3Details](h.T, h.rig, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: user.IPAddress, VrfID: user.VrfID}) {
			id := sessionID{
				outside: endpoint(d.OutsideIPAddress, d.OutsidePort), inside: endpoint(d.InsideIPAddress, d.InsidePort),
				client: endpoint(d.ExtHostAddress, d.ExtHostPort), masked: endpoint(d.ExtHostNatAddress, d.ExtHostNatPort), proto: d.Protocol,
			}
			if all[id] != nil {
				h.Errorf("session %v is there twice", id)
			}
			all[id] = d
		}
	}
	return all
}

func endpoint(addr [4]byte, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4(addr), port)
}

// change makes VPP hold other rows and looks what became of the flows: those to a backend that its
// row has before and after are the sessions they were, unless VPP had no way to change the row in
// place; no other session is left. It returns the flows that ended.
func (h *holder) change(what string, change func(*nat44.Want)) (ended []*flow) {
	h.Helper()
	before := make(map[rule.Key]nat44.Row, len(h.want.Rows))
	for k, r := range h.want.Rows {
		before[k] = r
	}
	change(h.want)
	ops := h.settle(h.T, h.want)
	kept := h.flows[:0:0]
	for _, f := range h.flows {
		old, row := before[f.row], h.want.Rows[f.row]
		if has(row, f.backend) && !replaces(old, row) {
			kept = append(kept, f)
		} else {
			ended = append(ended, f)
		}
	}
	h.flows = kept
	h.compare(fmt.Sprintf("%s: %v", what, ops))
	for _, f := range ended {
		if f.first {
			h.Errorf("%s: a session of the beginning has ended: %v", what, f.session)
		}
	}
	h.counts["changes: "+what]++
	h.counts["sessions ended with their backend or row"] += len(ended)
	return ended
}

// compare fails the test unless the sessions of VPP are those of the flows, none new and none gone.
func (h *holder) compare(when string) {
	h.Helper()
	sessions := h.sessions()
	for _, f := range h.flows {
		d := sessions[f.session]
		switch {
		case d == nil:
			h.Errorf("%s: the session %v is gone", when, f.session)
		case d.TotalPkts < f.packets || d.IsTimedOut || f.session.inside != f.backend:
			h.Errorf("%s: the session %v is another one: %d packets, before %d", when, f.session, d.TotalPkts, f.packets)
		default:
			f.packets = d.TotalPkts
		}
		delete(sessions, f.session)
		h.counts["sessions compared"]++
	}
	for id := range sessions {
		h.Errorf("%s: the session %v should be gone", when, id)
	}
}

// has reports whether a row has a backend, for new connections or for those that it has.
func has(r nat44.Row, backend netip.AddrPort) bool {
	is := func(l nat44.Local) bool { return netip.AddrPortFrom(l.Addr, l.Port) == backend }
	return slices.ContainsFunc(r.Locals, is) || slices.ContainsFunc(r.Draining, is)
}

// replaces reports whether VPP has no way to make one row the other in place: it can change neither
// flags nor affinity, and would go on to send the clients of a row with affinity to a backend that
// has gone.
func replaces(before, after nat44.Row) bool {
	lost := slices.ContainsFunc(before.Locals, func(l nat44.Local) bool { return !has(after, netip.AddrPortFrom(l.Addr, l.Port)) })
	return before.Flags != after.Flags || before.Affinity != after.Affinity || after.Affinity > 0 && lost
}

// stale sends a packet of each flow that ended, as a client does that does not know. TCP is met
// with silence, because it is no SYN; UDP goes to a backend that the row still has, or nowhere. It
// returns the flows that got another backend so.
func (h *holder) stale(ended []*flow) {
	h.Helper()
	packets := make([]packet, len(ended))
	for i, f := range ended {
		packets[i] = h.request(f, ack)
	}
	arrived := h.traffic.exchange(h.T, packets)
	var reborn []*flow
	for i, f := range ended {
		got, found := arrived[packets[i].id]
		row, exists := h.want.Rows[f.row]
		switch serves := exists && f.row.Proto == rule.UDP; {
		case found != serves:
			h.Errorf("stale packet %v arrived: %v, as %v", packets[i], found, got)
		case serves && !has(row, got.dst):
			h.Errorf("stale packet %v arrived at %v, which the row does not have", packets[i], got)
		case serves:
			reborn = append(reborn, &flow{row: f.row, client: f.client, backend: got.dst, seen: got.src})
		}
		h.counts["stale packets sent"]++
	}
	h.handshake(reborn)
}

// print writes what was counted.
func (h *holder) print() {
	var b strings.Builder
	names := make([]string, 0, len(h.counts))
	for name := range h.counts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "\n  %7d %s", h.counts[name], name)
	}
	h.Logf("%d sessions are open%s", len(h.flows), b.String())
}
