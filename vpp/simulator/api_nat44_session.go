package simulator

import (
	"net/netip"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// registerNAT44Session registers the messages about sessions and their users.
func registerNAT44Session(r registry) {
	read(r, natUserDump)
	read(r, natUserSessionDump)
	read(r, natUserSessionV2Dump)
	read(r, natUserSessionV3Dump)
	write(r, natDelSession)
}

// natUserDump counts the sessions per inside address: for service sessions
// that is the backend.
func natUserDump(c *call, _ *nat44_ed.Nat44UserDump) {
	type user struct {
		addr netip.Addr
		fib  uint32
	}
	var order []user
	static, dynamic := make(map[user]uint32), make(map[user]uint32)
	for _, s := range c.nat.sessions.all {
		u := user{addr: s.inside.Addr(), fib: s.insideFIB}
		if static[u]+dynamic[u] == 0 {
			order = append(order, u)
		}
		if s.has(sessionStatic) {
			static[u]++
		} else {
			dynamic[u]++
		}
	}
	for _, u := range order {
		details := &nat44_ed.Nat44UserDetails{
			IPAddress: toIP4(u.addr), Nsessions: dynamic[u], Nstaticsessions: static[u],
		}
		if t := c.table4(u.fib); t != nil {
			details.VrfID = t.id
		}
		c.reply(details)
	}
}

// eachSession visits the sessions of an inside address; the VRF plays no part.
func (n *nat44) eachSession(addr [4]byte, each func(*session)) {
	for _, s := range n.sessions.all {
		if s.inside.Addr() == fromIP4(addr) {
			each(s)
		}
	}
}

// sessionDetails encodes a session in the richest form.
func (n *nat44) sessionDetails(s *session) *nat44_ed.Nat44UserSessionV3Details {
	flags := nat_types.NAT_IS_EXT_HOST_VALID
	if s.has(sessionStatic) {
		flags |= nat_types.NAT_IS_STATIC
	}
	d := &nat44_ed.Nat44UserSessionV3Details{
		OutsideIPAddress:   toIP4(s.outside.Addr()),
		OutsidePort:        s.outside.Port(),
		InsideIPAddress:    toIP4(s.inside.Addr()),
		InsidePort:         s.inside.Port(),
		Protocol:           uint16(s.proto),
		LastHeard:          uint64(s.lastHeard),
		TimeSinceLastHeard: uint64(max(0, n.m.now()-s.lastHeard)),
		TotalBytes:         s.bytes,
		TotalPkts:          s.packets,
		ExtHostAddress:     toIP4(s.ext.Addr()),
		ExtHostPort:        s.ext.Port(),
		IsTimedOut:         n.looksTimedOut(s),
	}
	if s.has(sessionTwice) {
		flags |= nat_types.NAT_IS_TWICE_NAT
		d.ExtHostNatAddress = toIP4(s.extNAT.Addr())
		d.ExtHostNatPort = s.extNAT.Port()
	}
	d.Flags = flags
	return d
}

func natUserSessionDump(c *call, req *nat44_ed.Nat44UserSessionDump) {
	c.nat.eachSession(req.IPAddress, func(s *session) {
		d := c.nat.sessionDetails(s)
		c.reply(&nat44_ed.Nat44UserSessionDetails{
			OutsideIPAddress: d.OutsideIPAddress, OutsidePort: d.OutsidePort,
			InsideIPAddress: d.InsideIPAddress, InsidePort: d.InsidePort,
			Protocol: d.Protocol, Flags: d.Flags, LastHeard: d.LastHeard,
			TotalBytes: d.TotalBytes, TotalPkts: d.TotalPkts,
			ExtHostAddress: d.ExtHostAddress, ExtHostPort: d.ExtHostPort,
			ExtHostNatAddress: d.ExtHostNatAddress, ExtHostNatPort: d.ExtHostNatPort,
		})
	})
}

func natUserSessionV2Dump(c *call, req *nat44_ed.Nat44UserSessionV2Dump) {
	c.nat.eachSession(req.IPAddress, func(s *session) {
		d := c.nat.sessionDetails(s)
		c.reply(&nat44_ed.Nat44UserSessionV2Details{
			OutsideIPAddress: d.OutsideIPAddress, OutsidePort: d.OutsidePort,
			InsideIPAddress: d.InsideIPAddress, InsidePort: d.InsidePort,
			Protocol: d.Protocol, Flags: d.Flags, LastHeard: d.LastHeard,
			TotalBytes: d.TotalBytes, TotalPkts: d.TotalPkts,
			ExtHostAddress: d.ExtHostAddress, ExtHostPort: d.ExtHostPort,
			ExtHostNatAddress: d.ExtHostNatAddress, ExtHostNatPort: d.ExtHostNatPort,
			IsTimedOut: d.IsTimedOut,
		})
	})
}

func natUserSessionV3Dump(c *call, req *nat44_ed.Nat44UserSessionV3Dump) {
	c.nat.eachSession(req.IPAddress, func(s *session) { c.reply(c.nat.sessionDetails(s)) })
}

// natDelSession ends the session with exactly this flow; the flags are not
// looked at.
func natDelSession(c *call, req *nat44_ed.Nat44DelSession) {
	fib, ok := c.fibIndex(0, req.VrfID)
	if !ok {
		fib = none
	}
	retval := c.nat.delFlow(flowKey{
		src:   endpoint(req.Address, req.Port),
		dst:   endpoint(req.ExtHostAddress, req.ExtHostPort),
		fib:   fib,
		proto: req.Protocol,
	})
	c.reply(&nat44_ed.Nat44DelSessionReply{Retval: retval})
}
