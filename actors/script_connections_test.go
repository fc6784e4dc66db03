package actors_test

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// dial opens a TCP connection when everything has come to rest.
func (s *story) dial(name, in, src, dst, want string) {
	s.world.Quiet()
	s.port++
	c, err := s.world.VPP.Dial(simulator.Packet{
		In: in, Src: netip.AddrPortFrom(netip.MustParseAddr(src), s.port), Dst: netip.MustParseAddrPort(dst), Proto: simulator.ProtoTCP,
	})
	if err != nil {
		s.Fatalf("%s: %v", s.line, err)
	}
	if got := c.Opened().Dst.String(); got != want {
		s.Errorf("%s: it gets to %s", s.line, got)
	}
	s.connections[name] = c
}

// exchange sends a packet and its answer over a connection when everything has come to rest.
func (s *story) exchange(name string, open bool) {
	c := s.connections[name]
	if c == nil {
		s.Fatalf("%s: no connection", s.line)
	}
	s.world.Quiet()
	if err := c.Exchange(); (err == nil) != open {
		s.Errorf("%s: %v", s.line, err)
	}
}
