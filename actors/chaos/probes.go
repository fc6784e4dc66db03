package chaos

import (
	"net/netip"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// The services that are observed all the time, beside those of rolling.go. No fault touches their
// rows.
const (
	// never changes: whatever happens, its rows stay and its connections live
	steady = serviceNames
	ageing = serviceNames + 1 // has one more endpoint each time: its row must never go back
	// never changes either, and serves clients of this node only: a client from outside must never
	// be let in
	inward = serviceNames + 2
)

// age is the kind of step that changes the ageing service.
const age = "age"

// knock is how often the connections through the steady service are tried, in virtual time.
const knock = time.Second

// observed watches some services all the time, not only at the end.
type observed struct {
	frontends map[frontend]bool // of the steady service
	at        frontend          // of the ageing one
	inward    frontend          // of the one for clients of this node
	years     int               // how often the ageing service has changed
	reached   int               // the newest endpoint of it that VPP has had
	// VPP has refused a part of a change of the ageing row, which may cost the row
	refused bool
	// connections through the steady service, by client
	open map[netip.AddrPort]simulator.Verdict
	// those through the rolling service, by holder, and how many were opened
	held   map[string]simulator.Verdict
	opened int
	// faults that may refuse a part of a change of the rolling row, which may cost the row
	refusing int
	// the overlay was replaced, which ends connections
	interrupted bool
	// since when rows of the steady service have been missing while the node said that it was
	// ready; zero = they are not
	missed time.Time
	boots  int // of VPP when they were opened
	// all other frontends that no other service can claim, with their services, once all is well
	settled map[frontend]int
	version uint64 // of the cluster then
}

// newObserved creates the services.
func newObserved(k *cluster) observed {
	k.put(steady, service{external: -1, nodePort: true})
	// pods of its own: VPP ends the connections to a backend that another service loses
	k.putSlice(steady, 0, []netip.Addr{podIP(1, podsPerNode), podIP(2, podsPerNode)})
	k.put(ageing, service{external: -1})
	// an address of its own, and no endpoint here
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
		held:   map[string]simulator.Verdict{},
	}
	startRolling(k)
	s.grow(k)
	return s
}

// has reports whether a frontend is one of an observed service.
func (s *observed) has(at frontend) bool {
	return at == s.at || at == s.inward || s.frontends[at] || at.Addr() == clusterIP(rolling) || at.Addr() == clusterIP(sharing)
}

// year is the endpoint that the ageing service gets in a year.
func year(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 1, byte(200 + n/250), byte(1 + n%250)})
}

// grow gives the ageing service its next endpoint; it keeps the one before.
func (s *observed) grow(k *cluster) {
	s.years++
	k.putSlice(ageing, 0, []netip.Addr{year(s.years - 1), year(s.years)})
}

// changed sees every change of a row.
func (s *observed) changed(w *world, c virtual.RowChange) {
	switch {
	case s.frontends[c.At] && (!c.Added || c.Backend.IsValid()), s.rests(w.cluster, c.At) && (!c.Added || c.Backend.IsValid()):
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

// intrude has a client from outside try the service for clients of this node (I16).
func (s *observed) intrude(w *world) {
	if got := w.probe(outsider(), s.inward); got.Action == simulator.Delivered && got.Dst != s.inward {
		w.breach("I16: a client from outside was let in: %v", got)
	}
}

// settle notes that all is well: from now on the rows of every service are observed until it
// changes.
func (s *observed) settle(k *cluster) {
	s.settled, s.version = map[frontend]int{}, k.version
	for n := range k.ordered() {
		s.settled[netip.AddrPortFrom(clusterIP(n), servicePort)] = n
		s.settled[netip.AddrPortFrom(netip.MustParseAddr(nodeIP), nodePort(n))] = n
	}
}

// rests reports whether a frontend is that of a service that has not changed since all was well.
func (s *observed) rests(k *cluster, at frontend) bool {
	n, known := s.settled[at]
	return known && k.touched[n] <= s.version
}

// compare finds out whether the row of the ageing service went back (I7).
func (s *observed) compare(w *world) {
	for _, row := range w.rows() {
		if row.At != s.at {
			continue
		}
		if len(row.Backends) == 0 {
			continue // VPP has refused the ones that follow those that drain
		}
		newest := -1
		for n := range s.years + 1 {
			if slices.Contains(row.Backends, netip.AddrPortFrom(year(n), endpointPort)) {
				newest = n
			}
		}
		if newest < s.reached {
			w.breach("I7: %s went back from endpoint %d to %d: %v", s.at, s.reached, newest, row)
		}
		s.reached = newest
	}
}

// watch tries the connections through the steady service again and again (I12), and those through
// the rolling one (I19).
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
		clear(s.open) // they died with VPP
		clear(s.held)
	}
	// Connections live by chance until the drift check finds a stolen setting. Without the role of
	// one interface VPP withdraws its routes to NAT addresses until a role is added. Without the
	// NAT address an agent that starts uses the twice-NAT address for a moment.
	if s.interrupted || w.strayed["nat44"] > 0 {
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
	if w.snat {
		s.knock(w, simulator.Packet{In: "pod1", Src: inside, Dst: netip.AddrPortFrom(outside.Addr(), endpointPort), Proto: protoTCP})
	}
}

// knock sends one packet and its answer.
func (s *observed) knock(w *world, p simulator.Packet) {
	id := netip.AddrPortFrom(p.Src.Addr(), p.Src.Port()+p.Dst.Port())
	p.Src = id
	before, isOpen := s.open[id]
	if isOpen {
		p.Flags = simulator.ACK
	}
	got := w.vpp.VPP.Send(p)
	back := w.vpp.VPP.Reply(got)
	whole := got.Action == simulator.Delivered && got.Dst.Port() == endpointPort && back.Action == simulator.Delivered && back.Src == p.Dst && back.Dst == p.Src
	switch {
	case isOpen && (!whole || got.Dst != before.Dst || got.Src != before.Src):
		w.breach("I12: the connection through %s broke: %v, answer %v, before %v", p.Dst, got, back, before)
		delete(s.open, id)
	case !isOpen && whole && (got.Dst != p.Dst || got.Src != p.Src): // translated
		s.open[id] = got
	}
}

// believable is how long a node may call itself ready although rows are missing: until it has
// noticed.
const believable = 3 * time.Second

// believe compares readiness with what is in VPP (I11). An actor that is suspended cannot notice
// anything, and a healer that gets no health cannot know.
func (s *observed) believe(w *world) {
	rows := 0
	for _, row := range w.rows() {
		if s.frontends[row.At] {
			rows++
		}
	}
	held := slices.ContainsFunc(w.sys.Snapshot(), func(a runtime.ActorState) bool { return a.Held || a.Suspended })
	deaf := w.injector.kind == "*messages.Health"
	switch now := w.sim.Now(); {
	case rows == len(s.frontends) || held || deaf || !w.deps.Readiness.Load().Ready:
		s.missed = time.Time{}
	case s.missed.IsZero():
		s.missed = now
	case now.Sub(s.missed) > believable:
		w.breach("I11: ready since %v although VPP has %d of %d rows of a service that never changed", w.deps.Readiness.Load().Since, rows, len(s.frontends))
		s.missed = now
	}
}
