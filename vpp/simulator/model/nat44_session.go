package model

import (
	"net/netip"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// registerNAT44Session registers the messages about sessions and their users.
func registerNAT44Session(r Registry) {
	Read(r, natUserDump)
	// Nat44UserSessionV3Dump lists the sessions of an inside address.
	Read(r, func(c *Call, req *nat44_ed.Nat44UserSessionV3Dump) {
		c.NAT.EachSession(netip.AddrFrom4(req.IPAddress), func(s *nat.Session) { c.Reply(sessionDetails(c, s)) })
	})
	write(r, natDelSession)
}

// natUserDump counts the sessions per inside address: for service sessions that is the backend.
func natUserDump(c *Call, _ *nat44_ed.Nat44UserDump) {
	type user struct {
		addr netip.Addr
		fib  uint32
	}
	var order []user
	static, dynamic := make(map[user]uint32), make(map[user]uint32)
	for _, s := range c.NAT.Sessions.All {
		u := user{addr: s.Inside.Addr(), fib: s.InsideFIB}
		if static[u]+dynamic[u] == 0 {
			order = append(order, u)
		}
		if s.Has(nat.SessionStatic) {
			static[u]++
		} else {
			dynamic[u]++
		}
	}
	for _, u := range order {
		details := &nat44_ed.Nat44UserDetails{
			IPAddress: ToIP4(u.addr), Nsessions: dynamic[u], Nstaticsessions: static[u],
		}
		if t := c.Table4(u.fib); t != nil {
			details.VrfID = t.ID
		}
		c.Reply(details)
	}
}

// sessionDetails encodes a session in the richest form.
func sessionDetails(c *Call, s *nat.Session) *nat44_ed.Nat44UserSessionV3Details {
	flags := nat_types.NAT_IS_EXT_HOST_VALID
	if s.Has(nat.SessionStatic) {
		flags |= nat_types.NAT_IS_STATIC
	}
	d := &nat44_ed.Nat44UserSessionV3Details{
		OutsideIPAddress:   ToIP4(s.Outside.Addr()),
		OutsidePort:        s.Outside.Port(),
		InsideIPAddress:    ToIP4(s.Inside.Addr()),
		InsidePort:         s.Inside.Port(),
		Protocol:           uint16(s.Proto),
		LastHeard:          uint64(s.LastHeard),
		TimeSinceLastHeard: uint64(max(0, c.Now()-s.LastHeard)),
		TotalBytes:         s.Bytes,
		TotalPkts:          s.Packets,
		ExtHostAddress:     ToIP4(s.Ext.Addr()),
		ExtHostPort:        s.Ext.Port(),
		IsTimedOut:         c.NAT.LooksTimedOut(s),
	}
	if s.Has(nat.SessionTwice) {
		flags |= nat_types.NAT_IS_TWICE_NAT
		d.ExtHostNatAddress = ToIP4(s.ExtNAT.Addr())
		d.ExtHostNatPort = s.ExtNAT.Port()
	}
	d.Flags = flags
	if !vnet.KnownProto(s.Proto) {
		// VPP notes the protocol in place of the ports, and not in the byte order of ports.
		d.Protocol, d.InsidePort, d.OutsidePort = 0, uint16(s.Proto)<<8, uint16(s.Proto)<<8
	}
	return d
}

// natDelSession ends the session with exactly this flow; the flags are not looked at.
func natDelSession(c *Call, req *nat44_ed.Nat44DelSession) {
	fib, ok := c.FIBIndex(0, req.VrfID)
	if !ok {
		fib = vnet.None
	}
	retval := c.NAT.DelFlow(nat.FlowKey{
		Src:   endpoint(req.Address, req.Port),
		Dst:   endpoint(req.ExtHostAddress, req.ExtHostPort),
		FIB:   fib,
		Proto: req.Protocol,
	})
	c.Reply(&nat44_ed.Nat44DelSessionReply{Retval: retval})
}
