package simulator

import (
	"container/list"
	"net/netip"
)

// sessionFlags are the properties of a session; the values are internal.
type sessionFlags uint8

const (
	sessionStatic   sessionFlags = 1 << iota // made by a static mapping
	sessionLB                                // made by a load-balancing mapping
	sessionAffinity                          // holds an affinity entry
	sessionTwice                             // client address translated too
	sessionHairpin                           // both ends inside
	sessionBypass                            // forwarded without translation
)

// flowKey identifies the packets of one direction of a session.
type flowKey struct {
	src, dst netip.AddrPort
	fib      uint32
	proto    uint8
}

// flow is one direction of a session: what it matches and what it makes of it.
type flow struct {
	match    flowKey
	src, dst netip.AddrPort // after translation
	fib      uint32         // lookup table after translation, none: that of the interface
}

// session is one entry of the session table.
type session struct {
	id    uint64
	index uint32
	flags sessionFlags
	proto uint8

	inside     netip.AddrPort // of a service session: the backend
	insideFIB  uint32
	outside    netip.AddrPort // of a service session: the VIP
	outsideFIB uint32
	ext        netip.AddrPort // the peer: of a service session, the client
	extNAT     netip.AddrPort // what twice-nat made of the peer

	i2o, o2i flow

	state     tcpState
	seen      [2]TCPFlags // flags seen so far, by direction
	lastHeard float64
	packets   uint32
	bytes     uint64

	group *vrfGroup
	lru   *list.List
	place *list.Element
	moved float64 // time of the last move in the LRU list
}

// has reports whether the session has the property.
func (s *session) has(f sessionFlags) bool { return s.flags&f != 0 }

// vrfGroup holds the sessions between two FIBs. They expire together when one
// of the FIBs is lost.
type vrfGroup struct {
	a, b    uint32
	expired bool
}

// lruLists order the sessions by age, one list per kind.
type lruLists struct {
	tcpTransitory, udp, other, icmp, tcpEstablished *list.List
}

// sessionTable holds the sessions of the one thread that the model has.
type sessionTable struct {
	sessions  pool[*session]
	flows     map[flowKey]*session
	byBackend map[netip.AddrPort]map[*session]bool
	groups    []*vrfGroup
	lru       lruLists
	serial    uint64
}

func newSessionTable() sessionTable {
	return sessionTable{
		flows:     make(map[flowKey]*session),
		byBackend: make(map[netip.AddrPort]map[*session]bool),
		lru: lruLists{
			tcpTransitory: list.New(), udp: list.New(), other: list.New(),
			icmp: list.New(), tcpEstablished: list.New(),
		},
	}
}

// timeout returns how long the session may be silent, in seconds.
func (n *nat44) timeout(s *session) float64 {
	switch {
	case s.proto == ProtoICMP:
		return float64(n.timeouts.icmp)
	case s.proto == ProtoTCP && s.state == tcpEstablished:
		return float64(n.timeouts.tcpEstablished)
	case s.proto == ProtoTCP:
		return float64(n.timeouts.tcpTransitory)
	default:
		return float64(n.timeouts.udp)
	}
}

// timedOut reports whether the session is dead, though it may still occupy
// its place.
func (n *nat44) timedOut(s *session) bool {
	return n.m.now() >= s.lastHeard+n.timeout(s)
}

// looksTimedOut is what dumps and summaries say of timedOut: they count in
// whole seconds and are up to a second early.
func (n *nat44) looksTimedOut(s *session) bool {
	return uint64(n.m.now()) >= uint64(s.lastHeard+n.timeout(s))
}

// newSession allocates a session. Every allocation also frees one expired
// session, if an LRU list has one at its head.
func (n *nat44) newSession(proto uint8) *session {
	n.freeOldest()
	n.serial++
	s := &session{id: n.serial, proto: proto}
	s.index = n.sessions.put(s)
	switch proto {
	case ProtoTCP:
		s.lru = n.lru.tcpTransitory
	case ProtoUDP:
		s.lru = n.lru.udp
	case ProtoICMP:
		s.lru = n.lru.icmp
	default:
		s.lru = n.lru.other
	}
	s.place = s.lru.PushBack(s)
	s.moved = n.m.now()
	return s
}

// freeOldest frees the first expired session that heads an LRU list.
func (n *nat44) freeOldest() bool {
	for _, l := range []*list.List{n.lru.tcpTransitory, n.lru.udp, n.lru.other, n.lru.icmp, n.lru.tcpEstablished} {
		if e := l.Front(); e != nil {
			if s, ok := e.Value.(*session); ok && n.timedOut(s) {
				n.freeSession(s)
				return true
			}
		}
	}
	return false
}

// register completes a new session: from now on it counts for its VRFs and
// its backend.
func (n *nat44) register(s *session) {
	for _, g := range n.groups {
		if !g.expired && ((g.a == s.insideFIB && g.b == s.outsideFIB) || (g.b == s.insideFIB && g.a == s.outsideFIB)) {
			s.group = g
		}
	}
	if s.group == nil {
		s.group = &vrfGroup{a: s.insideFIB, b: s.outsideFIB}
		n.groups = append(n.groups, s.group)
	}
	peers := n.byBackend[s.inside]
	if peers == nil {
		peers = make(map[*session]bool)
		n.byBackend[s.inside] = peers
	}
	peers[s] = true
}

// freeSession ends a session and gives back what it holds.
func (n *nat44) freeSession(s *session) {
	if s.has(sessionAffinity) && !s.has(sessionBypass) {
		n.release(affinityKey{client: s.ext.Addr(), service: s.outside, proto: s.proto})
	}
	n.dropSession(s)
}

// dropSession removes a session from the table. Used alone, it leaves the
// affinity entry of a session that could not be completed locked for ever, as
// VPP does.
func (n *nat44) dropSession(s *session) {
	s.lru.Remove(s.place)
	delete(n.flows, s.i2o.match)
	delete(n.flows, s.o2i.match)
	n.sessions.remove(s.index)
	if peers := n.byBackend[s.inside]; peers != nil {
		if delete(peers, s); len(peers) == 0 {
			delete(n.byBackend, s.inside)
		}
	}
}

// expireVRF makes all sessions of a FIB go at their next packet.
func (n *nat44) expireVRF(fib uint32) {
	kept := n.groups[:0]
	for _, g := range n.groups {
		if g.a == fib || g.b == fib {
			g.expired = true
			continue
		}
		kept = append(kept, g)
	}
	n.groups = kept
}

// addI2O enters the inside direction into the flow table. An older flow with
// the same key is overwritten.
func (n *nat44) addI2O(s *session) {
	n.flows[s.i2o.match] = s
}

// addO2I enters the outside direction into the flow table. Dynamic sessions
// must keep off the endpoints of static mappings; with fresh set, an existing
// flow is an error instead of being overwritten.
func (n *nat44) addO2I(s *session, fresh bool) bool {
	if !s.has(sessionStatic) {
		if mp, _ := n.external(s.o2i.match.dst, s.proto); mp != nil {
			return false
		}
	}
	if _, taken := n.flows[s.o2i.match]; fresh && taken {
		return false
	}
	n.flows[s.o2i.match] = s
	return true
}

// touch notes a packet of a session.
func (n *nat44) touch(s *session, bytes int) {
	now := n.m.now()
	s.lastHeard = now
	s.packets++
	s.bytes += uint64(bytes)
	if s.lastHeard > s.moved+1 {
		n.requeue(s, s.lru)
	}
}

// requeue moves a session to the young end of an LRU list.
func (n *nat44) requeue(s *session, l *list.List) {
	s.lru.Remove(s.place)
	s.lru = l
	s.place = l.PushBack(s)
	s.moved = n.m.now()
}

// tcpState is how far a TCP session is.
type tcpState uint8

const (
	tcpClosed tcpState = iota
	tcpEstablished
	tcpClosing
)

// Directions of a session, as indexes of session.seen.
const (
	dirI2O = 0
	dirO2I = 1
)

// track follows the TCP handshake: established after SYN and ACK were seen in
// both directions, closing after FIN or RST in one.
func (n *nat44) track(s *session, flags TCPFlags, dir int) {
	old := s.seen[dir]
	s.seen[dir] |= flags & (FIN | SYN | RST | ACK)
	if s.seen[dir] == old {
		return
	}
	open := s.seen[dirI2O]&s.seen[dirO2I] == SYN|ACK
	switch {
	case s.state != tcpEstablished && open:
		if s.state == tcpClosing {
			s.packets, s.bytes = 0, 0
		}
		s.state = tcpEstablished
		n.requeue(s, n.lru.tcpEstablished)
	case s.state == tcpEstablished && s.seen[dir]&(FIN|RST) != 0:
		s.state = tcpClosing
		s.seen = [2]TCPFlags{}
		s.lastHeard = n.m.now()
		n.requeue(s, n.lru.tcpTransitory)
	}
}

// delFlow ends the session that a flow belongs to.
func (n *nat44) delFlow(key flowKey) int32 {
	if !n.enabled {
		return retUnsupported
	}
	if s := n.flows[key]; s != nil {
		n.freeSession(s)
		return retOK
	}
	// The keys of mappings are in the same hash. A flow to 0.0.0.0:0 looks
	// like one, and its value is then taken for the index of a session.
	if index, ok := n.i2o[mappingKey{at: key.src, fib: key.fib, proto: key.proto}]; ok && key.dst == unspecified4 {
		s, used := n.sessions.get(index)
		if !used {
			return retUnspecified
		}
		n.freeSession(s)
		return retOK
	}
	return retNoSuchEntry
}
