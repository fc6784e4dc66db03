package cnat

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Lifetimes of sessions without a packet, in seconds: VPP's defaults.
const (
	ageNew         = 30
	ageEstablished = 3600 // after SYN and ACK
	ageClosed      = 5    // after FIN or RST
)

// location is where a session is looked up.
type location uint8

const (
	input  location = 0
	output location = 1
)

// flow are the endpoints of a packet.
type flow struct{ src, dst netip.AddrPort }

// sessionKey identifies a session: the endpoints of its packets, and where VPP looks it up.
type sessionKey struct {
	flow
	proto uint8
	at    location
}

// session is the translation of the packets of one direction.
type session struct {
	to     flow
	age    *age
	vip    netip.Addr // whose entry in the FIB it keeps; invalid = none
	source source     // that it has; zero = none
}

// age is shared by both directions of a connection.
type age struct{ used, life float64 }

// known translates a packet that has a session.
func (p *Plugin) known(t *vnet.Packet, at location) bool {
	s, found := p.sessions[sessionKey{flow{t.Src, t.Dst}, t.Proto, at}]
	if found {
		p.translate(t, s)
	}
	return found
}

// translate applies a session to a packet.
func (p *Plugin) translate(t *vnet.Packet, s *session) {
	t.Src, t.Dst = s.to.src, s.to.dst
	s.age.used = p.net.Now()
	if t.Proto != vnet.ProtoTCP {
		return
	}
	switch {
	case t.Flags&(vnet.FIN|vnet.RST) != 0:
		s.age.life = ageClosed
	case t.Flags&vnet.SYN != 0 && t.Flags&vnet.ACK != 0:
		s.age.life = ageEstablished
	}
}

// open makes the sessions of a connection and translates its first packet. A session of another
// connection for the same answers stays.
func (p *Plugin) open(t *vnet.Packet, at, back location, to flow, vip netip.Addr, src source) {
	from, age := flow{t.Src, t.Dst}, &age{used: p.net.Now(), life: ageNew}
	s := &session{to: to, age: age, vip: vip, source: src}
	if vip.IsValid() {
		p.hold(vip, false)
	}
	p.sessions[sessionKey{from, t.Proto, at}] = s
	answers := sessionKey{flow{to.dst, to.src}, t.Proto, back}
	if _, taken := p.sessions[answers]; !taken {
		p.sessions[answers] = &session{to: flow{from.dst, from.src}, age: age}
	}
	p.translate(t, s)
}

// scanEvery is the time between two scans, in seconds. Until then a packet revives a session that
// is too old.
const scanEvery = 1

// scan ends the sessions that had no packet for too long.
func (p *Plugin) scan() {
	now := p.net.Now()
	if now-p.scanned < scanEvery {
		return
	}
	p.scanned = now
	p.end(func(s *session) bool { return now-s.age.used > s.age.life })
}

// end ends sessions.
func (p *Plugin) end(which func(*session) bool) {
	for key, s := range p.sessions {
		if !which(s) {
			continue
		}
		delete(p.sessions, key)
		if s.vip.IsValid() {
			p.release(s.vip)
		}
		if s.source != (source{}) {
			delete(p.sources, s.source)
			p.lowest[s.source.proto] = min(p.lowest[s.source.proto], s.source.port)
		}
	}
}

// Session is a session as VPP lists it: packets from Src to Dst go to New.
type Session struct {
	Src, Dst, New netip.AddrPort
	Proto         uint8
	Location      uint8
}

// Sessions lists the sessions, each direction by itself.
func (p *Plugin) Sessions() []Session {
	p.scan()
	all := make([]Session, 0, len(p.sessions))
	for key, s := range p.sessions {
		all = append(all, Session{key.src, key.dst, s.to.dst, key.proto, uint8(key.at)})
	}
	slices.SortFunc(all, func(a, b Session) int {
		return cmp.Or(a.Src.Compare(b.Src), a.Dst.Compare(b.Dst), cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Location, b.Location))
	})
	return all
}

// Ports of replaced sources.
const (
	firstPort = 49152
	lastPort  = 65534
)

// source is a source port that a session has, of all NAT addresses.
type source struct {
	proto uint8
	port  uint16
}

// allocate returns the lowest port that no session of the protocol has.
func (p *Plugin) allocate(proto uint8) (source, bool) {
	for port := max(firstPort, p.lowest[proto]); port <= lastPort; port++ {
		if s := (source{proto, port}); !p.sources[s] {
			p.sources[s], p.lowest[proto] = true, port+1
			return s, true
		}
	}
	p.noPort++
	return source{}, false
}

// Timestamps is the output of "show cnat timestamp": each connection has one.
func (p *Plugin) Timestamps() string {
	p.scan()
	all := make(map[*age]bool, len(p.sessions))
	for _, s := range p.sessions {
		all[s.age] = true
	}
	return fmt.Sprintf("-- Pool 0 [%d/65536]\nTotal timestamps %d\n", len(all), len(all))
}

// Errors is the output of "show errors", as far as CNAT counts.
func (p *Plugin) Errors() string {
	text := "  Count                  Node                              Reason               Severity \n"
	if p.noPort > 0 {
		text += fmt.Sprintf("%10d         cnat-output-ip6                 no more free ports           error   \n", p.noPort)
	}
	return text
}
