package nat

import (
	"container/list"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// SessionFlags are the properties of a session; the values are internal.
type SessionFlags uint8

const (
	SessionStatic   SessionFlags = 1 << iota // made by a static mapping
	sessionLB                                // made by a load-balancing mapping
	sessionAffinity                          // holds an affinity entry
	SessionTwice                             // client address translated too
	sessionHairpin                           // both ends inside
	sessionBypass                            // forwarded without translation
)

// FlowKey identifies the packets of one direction of a session.
type FlowKey struct {
	Src, Dst netip.AddrPort
	FIB      uint32
	Proto    uint8
}

// flow is one direction of a session: the packets that it matches and their translation.
type flow struct {
	match    FlowKey
	src, dst netip.AddrPort // after translation
	fib      uint32         // lookup table after translation, none: the interface's
}

// Session is one entry of the session table.
type Session struct {
	// Set when the session is made.
	ID    uint64
	index uint32
	flags SessionFlags
	Proto uint8

	Inside     netip.AddrPort // of a service session: the backend
	InsideFIB  uint32
	Outside    netip.AddrPort // of a service session: the VIP
	outsideFIB uint32
	Ext        netip.AddrPort // the peer: of a service session, the client
	ExtNAT     netip.AddrPort // the peer after twice-NAT

	i2o, o2i flow

	// Changed by every packet.
	state     tcpState
	seen      [2]vnet.TCPFlags // flags seen so far, by direction
	LastHeard float64
	Packets   uint32
	Bytes     uint64

	// Places in the lists of the table.
	group *vrfGroup
	lru   *list.List
	place *list.Element
	moved float64 // time of the last move in the LRU list
}

// Has reports whether the session has the property.
func (s *Session) Has(f SessionFlags) bool { return s.flags&f != 0 }

// vrfGroup holds the sessions between two FIBs. They expire together when one of the FIBs is lost.
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
	Sessions  vnet.Pool[*Session]
	flows     map[FlowKey]*Session
	byBackend map[netip.AddrPort]map[*Session]bool
	groups    []*vrfGroup
	lru       lruLists
	serial    uint64
}

func newSessionTable() sessionTable {
	return sessionTable{
		flows:     make(map[FlowKey]*Session),
		byBackend: make(map[netip.AddrPort]map[*Session]bool),
		lru: lruLists{
			tcpTransitory: list.New(), udp: list.New(), other: list.New(),
			icmp: list.New(), tcpEstablished: list.New(),
		},
	}
}

// timeout returns how long the session may be silent, in seconds.
func (n *Plugin) timeout(s *Session) float64 {
	switch {
	case s.Proto == vnet.ProtoICMP:
		return float64(n.Timeouts.ICMP)
	case s.Proto == vnet.ProtoTCP && s.state == tcpEstablished:
		return float64(n.Timeouts.TCPEstablished)
	case s.Proto == vnet.ProtoTCP:
		return float64(n.Timeouts.TCPTransitory)
	default:
		return float64(n.Timeouts.UDP)
	}
}

// timedOut reports whether the session has expired, though it may still occupy its place.
func (n *Plugin) timedOut(s *Session) bool {
	return n.net.Now() >= s.LastHeard+n.timeout(s)
}

// LooksTimedOut is timedOut as dumps and summaries show it: they count in whole seconds and are up
// to a second early.
func (n *Plugin) LooksTimedOut(s *Session) bool {
	return uint64(n.net.Now()) >= uint64(s.LastHeard+n.timeout(s))
}

// newSession allocates a session. Every allocation also frees one expired session, if an LRU list
// has one at its head.
func (n *Plugin) newSession(proto uint8) *Session {
	n.freeOldest()
	n.serial++
	s := &Session{ID: n.serial, Proto: proto}
	s.index = n.Sessions.Put(s)
	switch proto {
	case vnet.ProtoTCP:
		s.lru = n.lru.tcpTransitory
	case vnet.ProtoUDP:
		s.lru = n.lru.udp
	case vnet.ProtoICMP:
		s.lru = n.lru.icmp
	default:
		s.lru = n.lru.other
	}
	s.place = s.lru.PushBack(s)
	s.moved = n.net.Now()
	return s
}

// freeOldest frees the first expired session that heads an LRU list.
func (n *Plugin) freeOldest() bool {
	for _, l := range []*list.List{n.lru.tcpTransitory, n.lru.udp, n.lru.other, n.lru.icmp, n.lru.tcpEstablished} {
		if e := l.Front(); e != nil {
			if s, ok := e.Value.(*Session); ok && n.timedOut(s) {
				n.freeSession(s)
				return true
			}
		}
	}
	return false
}

// register completes a new session: from now on it counts for its VRFs and its backend.
func (n *Plugin) register(s *Session) {
	for _, g := range n.groups {
		if !g.expired && ((g.a == s.InsideFIB && g.b == s.outsideFIB) || (g.b == s.InsideFIB && g.a == s.outsideFIB)) {
			s.group = g
		}
	}
	if s.group == nil {
		s.group = &vrfGroup{a: s.InsideFIB, b: s.outsideFIB}
		n.groups = append(n.groups, s.group)
	}
	peers := n.byBackend[s.Inside]
	if peers == nil {
		peers = make(map[*Session]bool)
		n.byBackend[s.Inside] = peers
	}
	peers[s] = true
}

// freeSession ends a session and gives back what it holds.
func (n *Plugin) freeSession(s *Session) {
	if s.Has(sessionAffinity) && !s.Has(sessionBypass) {
		n.release(affinityKey{client: s.Ext.Addr(), service: s.Outside, proto: s.Proto})
	}
	n.dropSession(s)
}

// dropSession removes a session from the table. Used alone, it leaves the affinity entry of a
// session that could not be completed locked without limit, as VPP does.
func (n *Plugin) dropSession(s *Session) {
	s.lru.Remove(s.place)
	delete(n.flows, s.i2o.match)
	delete(n.flows, s.o2i.match)
	n.Sessions.Remove(s.index)
	if peers := n.byBackend[s.Inside]; peers != nil {
		if delete(peers, s); len(peers) == 0 {
			delete(n.byBackend, s.Inside)
		}
	}
}

// expireVRF makes all sessions of a FIB go at their next packet.
func (n *Plugin) expireVRF(fib uint32) {
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

// addI2O enters the inside direction into the flow table. An older flow with the same key is
// overwritten.
func (n *Plugin) addI2O(s *Session) {
	n.flows[s.i2o.match] = s
}

// addO2I enters the outside direction into the flow table. Dynamic sessions must keep off the
// endpoints of static mappings; with fresh set, an existing flow is an error instead of being
// overwritten.
func (n *Plugin) addO2I(s *Session, fresh bool) bool {
	if !s.Has(SessionStatic) {
		if mp, _ := n.External(s.o2i.match.Dst, s.Proto); mp != nil {
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
func (n *Plugin) touch(s *Session, bytes int) {
	now := n.net.Now()
	s.LastHeard = now
	s.Packets++
	s.Bytes += uint64(bytes)
	if s.LastHeard > s.moved+1 {
		n.requeue(s, s.lru)
	}
}

// requeue moves a session to the young end of an LRU list.
func (n *Plugin) requeue(s *Session, l *list.List) {
	s.lru.Remove(s.place)
	s.lru = l
	s.place = l.PushBack(s)
	s.moved = n.net.Now()
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

// track follows the TCP handshake: established after SYN and ACK were seen in both directions,
// closing after FIN or RST in one.
func (n *Plugin) track(s *Session, flags vnet.TCPFlags, dir int) {
	old := s.seen[dir]
	s.seen[dir] |= flags & (vnet.FIN | vnet.SYN | vnet.RST | vnet.ACK)
	if s.seen[dir] == old {
		return
	}
	open := s.seen[dirI2O]&s.seen[dirO2I] == vnet.SYN|vnet.ACK
	switch {
	case s.state != tcpEstablished && open:
		if s.state == tcpClosing {
			s.Packets, s.Bytes = 0, 0
		}
		s.state = tcpEstablished
		n.requeue(s, n.lru.tcpEstablished)
	case s.state == tcpEstablished && s.seen[dir]&(vnet.FIN|vnet.RST) != 0:
		s.state = tcpClosing
		s.seen = [2]vnet.TCPFlags{}
		s.LastHeard = n.net.Now()
		n.requeue(s, n.lru.tcpTransitory)
	}
}

// DelFlow ends the session that a flow belongs to.
func (n *Plugin) DelFlow(key FlowKey) int32 {
	if !n.Enabled {
		return vnet.RetUnsupported
	}
	if s := n.flows[key]; s != nil {
		n.freeSession(s)
		return vnet.RetOK
	}
	// The keys of mappings are in the same hash. A flow to 0.0.0.0:0 looks like one, and its
	// value is then taken for the index of a session.
	if index, ok := n.i2o[mappingKey{at: key.Src, fib: key.FIB, proto: key.Proto}]; ok && key.Dst == unspecified4 {
		s, used := n.Sessions.Get(index)
		if !used {
			return vnet.RetUnspecified
		}
		n.freeSession(s)
		return vnet.RetOK
	}
	return vnet.RetNoSuchEntry
}

// EachSession visits the sessions of an inside address; the VRF plays no part.
func (n *Plugin) EachSession(addr netip.Addr, each func(*Session)) {
	for _, s := range n.Sessions.All {
		if s.Inside.Addr() == addr {
			each(s)
		}
	}
}

// FillSessions puts up to count idle UDP sessions of a foreign service into the session table and
// returns how many there was room for.
func (n *Plugin) FillSessions(count int) (added int) {
	vip := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, 0, 1}), 9)
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, 0, 2}), 9)
	for i := range count {
		client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 19, byte(i >> 16), byte(i >> 8)}), uint16(1024+i&0xff))
		if n.full(0) {
			break
		}
		t := &Transit{Network: n.net, nat: n, Packet: vnet.Packet{Src: client, Dst: vip, Proto: vnet.ProtoUDP}, txFIB: vnet.None, out: vnet.None}
		s := t.serviceSession(match{mp: &Mapping{Flags: MapOut2inOnly | MapLB, External: vip}, at: to})
		if s == nil {
			break
		}
		n.touch(s, 0)
		added++
	}
	return added
}
