package chaos

import (
	"net/netip"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// The services that are observed all the time, besides the services of rolling.go. No fault touches
// their rows.
const (
	steady = serviceNames     // never changes: its rows stay, and connections through it live
	ageing = serviceNames + 1 // gets one endpoint after the other: its row must never go back
	inward = serviceNames + 2 // never changes, serves clients of this node only
)

// age is the kind of step that changes the ageing service.
const age = "age"

// knock is the interval between packets on the connections through the steady service, in virtual
// time.
const knock = time.Second

// observed checks some services all the time, not only at the end.
type observed struct {
	// Frontends; they do not change.
	frontends map[frontend]bool // of the steady service
	at        frontend          // of the ageing service
	inward    frontend          // of the inward service

	// The ageing service: only its changes and its row set these fields.
	years   int  // changes so far
	reached int  // the newest endpoint that was in VPP
	own     int  // the newest one that this process of the agent has put there
	started int  // starts of VPP before that
	refused bool // VPP has refused a part of a change of the row, which may cost the row
	torn    int  // the newest endpoint of that change

	// Connections: only watch, and faults that end connections, set these fields.
	open        map[netip.AddrPort]simulator.Verdict // through the steady service, by client
	held        map[string]simulator.Verdict         // through the rolling service, by holder
	opened      int                                  // connections through the rolling service
	left        map[netip.Addr]int                   // removals of a pod, not yet done
	later       func(func())                         // when a removal is done; nil = at once
	boots       int                                  // starts of VPP before the connections
	interrupted bool                                 // the overlay was replaced, which ends connections
	ticks       int                                  // packets on each connection so far
	rested      bool                                 // all has been well for a while

	// missed is when rows of the steady service were first missing on a ready node; zero = none
	// is.
	missed time.Time

	// settled are the other frontends that only one service can claim, with this service, and
	// version is the version of the cluster when all was well. Only runs with a single fault
	// set them.
	settled map[frontend]int
	version uint64
}

// newObserved creates the observed services.
func newObserved(k *cluster) observed {
	k.put(steady, service{external: -1, nodePort: true})
	// with pods of its own: VPP ends connections to a backend that another service loses
	k.putSlice(steady, 0, []netip.Addr{podIP(1, podsPerNode), podIP(2, podsPerNode)})
	k.put(ageing, service{external: -1})
	// with an address of its own, and without an endpoint on this node
	k.put(inward, service{external: balancerIPs, local: true})
	k.putSlice(inward, 0, []netip.Addr{podIP(2, podsPerNode+1)})
	s := observed{
		frontends: map[frontend]bool{
			netip.AddrPortFrom(clusterIP(steady), servicePort):                true,
			netip.AddrPortFrom(netip.MustParseAddr(nodeIP), nodePort(steady)): true,
		},
		at:     netip.AddrPortFrom(clusterIP(ageing), servicePort),
		inward: netip.AddrPortFrom(balancerIP(balancerIPs), servicePort),
		open:   map[netip.AddrPort]simulator.Verdict{},
		left:   map[netip.Addr]int{},
		held:   map[string]simulator.Verdict{},
	}
	startRolling(k)
	s.grow(k)
	return s
}

// has reports whether a frontend belongs to an observed service.
func (s *observed) has(at frontend) bool {
	return at == s.at || at == s.inward || s.frontends[at] || at.Addr() == clusterIP(rolling) || at.Addr() == clusterIP(sharing)
}

// year is the endpoint that the ageing service gets with its nth change.
func year(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 1, byte(200 + n/250), byte(1 + n%250)})
}

// grow gives the ageing service its next endpoint; it keeps only the previous one.
func (s *observed) grow(k *cluster) {
	s.years++
	k.putSlice(ageing, 0, []netip.Addr{year(s.years - 1), year(s.years)})
}

// changed checks a change of a row.
func (s *observed) changed(w *world, c virtual.RowChange) {
	if boots := w.vpp.Boots(); boots != s.started {
		// VPP has lost the row. An agent that serves the local mirror does not know what the
		// process before it had put there.
		s.started, s.reached = boots, s.own
	}
	n, rests := s.settled[c.At]
	rests = rests && w.cluster.touched[n] <= s.version // since all was well
	switch {
	case (s.frontends[c.At] || rests) && (!c.Added || c.Backend.IsValid()):
		w.breach("I6: %s was changed although its service is the same: %+v", c.At, c)
	case c.At == s.at && !c.Added && !c.Backend.IsValid():
		if !s.refused {
			w.breach("I6: %s was removed although its service goes on", c.At)
		}
		s.refused = false
	case c.At == s.at && w.source.listed != nil:
		s.reached = 0 // the local mirror is as old as its last save
	case c.At == s.at && c.Added:
		s.compare(w)
	case c.At == s.inward && c.Added:
		s.intrude(w)
	}
}

// intrude sends a packet from outside to the service for clients of this node (I16).
func (s *observed) intrude(w *world) {
	if got := w.probe(outsider(), s.inward); got.Action == simulator.Delivered && got.Dst != s.inward {
		w.breach("I16: a client from outside was let in: %v", got)
	}
}

// compare checks that the row of the ageing service does not go back (I7). The nth state of the
// service has the endpoints n-1 and n. While a row changes, it may have n-1 alone.
func (s *observed) compare(w *world) {
	for _, row := range w.rows() {
		if row.At != s.at || len(row.Backends) == 0 {
			continue // without backends: VPP has refused the ones that replace draining ones
		}
		oldest, newest := s.years+1, -1
		for n := range s.years + 1 {
			if slices.Contains(row.Backends, netip.AddrPortFrom(year(n), endpointPort)) {
				oldest, newest = min(oldest, n), n
			}
		}
		if s.torn > 0 && newest <= s.torn {
			continue // the completion of the row may drain what the refused change had added
		}
		if newest < s.reached && (newest < 0 || oldest < s.reached-1) {
			w.breach("I7: %s went back from endpoint %d to %d: %v", s.at, s.reached, newest, row)
		}
		s.reached, s.own = max(newest, s.reached), max(newest, s.own)
	}
}

// watch tries the connections through the steady service (I12) and the rolling service (I19) once a
// second, and checks all else that must hold at any time.
func (s *observed) watch(w *world) {
	s.try(w)
	s.intrude(w)
	s.believe(w)
	w.answered()
	w.bounded()
	w.sim.AfterFunc(knock, func() { s.watch(w) })
}

// try sends a packet on every connection, or opens it.
func (s *observed) try(w *world) {
	if s.boots != w.vpp.Boots() {
		s.boots = w.vpp.Boots()
		clear(s.open) // connections end with VPP
		clear(s.held)
	}
	// Connections live by chance until the drift check finds a stolen setting. Without the role
	// of one interface VPP withdraws its routes to NAT addresses until a role is added. Without
	// the NAT address an agent that starts uses the twice-NAT address for a moment.
	if s.interrupted || w.strayed[nat44.Renderer] > 0 {
		return
	}
	inside, outside := netip.AddrPortFrom(podIP(1, 1), 40001), netip.AddrPortFrom(netip.MustParseAddr("198.51.100.7"), 40002)
	for at := range s.frontends {
		s.knock(w, simulator.Packet{In: uplink, Src: outside, Dst: at, Proto: protoTCP})
		if at.Addr() == clusterIP(steady) {
			s.knock(w, simulator.Packet{In: "pod1", Src: inside, Dst: at, Proto: protoTCP})
		}
	}
	s.hold(w)
	s.again(w)
	if w.snat {
		s.knock(w, simulator.Packet{In: "pod1", Src: inside, Dst: netip.AddrPortFrom(outside.Addr(), endpointPort), Proto: protoTCP})
	}
}

// knock sends one packet on a connection, or opens the connection.
func (s *observed) knock(w *world, p simulator.Packet) {
	id := netip.AddrPortFrom(p.Src.Addr(), p.Src.Port()+p.Dst.Port())
	p.Src = id
	before, isOpen := s.open[id]
	if isOpen {
		p.Flags = simulator.ACK
	}
	got, back, whole := w.exchange(p)
	switch {
	case isOpen && (!whole || got.Dst != before.Dst || got.Src != before.Src):
		w.breach("I12: the connection through %s broke: %v, answer %v, before %v", p.Dst, got, back, before)
		delete(s.open, id)
	case !isOpen && whole && (got.Dst != p.Dst || got.Src != p.Src): // translated
		s.open[id] = got
	}
}

// exchange sends a packet, and the answer to it. It reports whether both arrived: the packet at an
// endpoint, and the answer with the address that the client had sent to.
func (w *world) exchange(p simulator.Packet) (got, back simulator.Verdict, whole bool) {
	got = w.vpp.VPP.Send(p)
	back = w.vpp.VPP.Reply(got)
	delivered := got.Action == simulator.Delivered && back.Action == simulator.Delivered
	return got, back, delivered && got.Dst.Port() == endpointPort && back.Src == p.Dst && back.Dst == p.Src
}

// believe compares readiness with the rows in VPP (I11). While an actor is suspended, or reports of
// health are lost, the agent cannot notice missing rows.
func (s *observed) believe(w *world) {
	const believable = 3 * time.Second // the time to notice
	rows := 0
	for _, row := range w.rows() {
		if s.frontends[row.At] {
			rows++
		}
	}
	held := slices.ContainsFunc(w.sys.Snapshot(), func(a runtime.ActorState) bool { return a.Held || a.Suspended })
	switch now := w.sim.Now(); {
	case rows == len(s.frontends) || held || !w.deps.Readiness.Load().Ready:
		s.missed = time.Time{}
	case s.missed.IsZero():
		s.missed = now
	case now.Sub(s.missed) > believable:
		w.breach("I11: ready since %v although VPP has %d of %d rows of a service that never changed", w.deps.Readiness.Load().Since, rows, len(s.frontends))
		s.missed = now
	}
}
