package actors_test

import "net/netip"

// dial opens a TCP connection when everything has come to rest.
func (s *story) dial(name, in, src, dst, want string) {
	s.world.Quiet()
	c, err := s.plane.dial(in, s.client(src), netip.MustParseAddrPort(dst))
	if err != nil {
		s.Fatalf("%s: %v", s.line, err)
	}
	if got := c.leads().String(); got != want {
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

// client returns an endpoint at an address that no packet has come from.
func (s *story) client(address string) netip.AddrPort {
	s.port++
	return netip.AddrPortFrom(netip.MustParseAddr(address), s.port)
}
