package cnat

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Policies of source NAT, by number.
const (
	policyNone  = iota // every packet
	policyIfPfx        // by interface and prefix
	policyK8s
	policies
)

// Interface tables of source NAT, by number. The first two are by address family.
const (
	tablePod  = 2
	tableHost = 3
	tables    = 4
)

// retMissing is what VPP returns for an unknown policy, and for the removal of a prefix that is not
// there. It is no error code.
const retMissing int32 = 1

// InterfaceTable is an interface in one of the tables of the policy.
type InterfaceTable struct {
	SwIf  uint32
	Table uint8
}

// SNAT is the configuration of source NAT. A message can read its addresses only.
type SNAT struct {
	IP4, IP6 netip.Addr
	SwIf     uint32
	Policy   uint8
	// survives its interface: the next one of that index inherits it
	Interfaces map[InterfaceTable]bool
	Excluded   map[netip.Prefix]bool
}

func newSNAT() SNAT {
	return SNAT{
		IP4: netip.IPv4Unspecified(), IP6: netip.IPv6Unspecified(), // and interface local0
		Interfaces: make(map[InterfaceTable]bool), Excluded: make(map[netip.Prefix]bool),
	}
}

// SetPolicy sets the policy.
func (s *SNAT) SetPolicy(policy uint8) int32 {
	if policy >= policies {
		return retMissing
	}
	s.Policy = policy
	return vnet.RetOK
}

// SetInterface puts an interface in a table or takes it out. Both are idempotent.
func (s *SNAT) SetInterface(i InterfaceTable, on bool) int32 {
	if i.Table >= tables {
		return vnet.RetInvalidValue
	}
	if on {
		s.Interfaces[i] = true
	} else {
		delete(s.Interfaces, i)
	}
	return vnet.RetOK
}

// Exclude makes a prefix one that is never source-NATed, or takes it back. A prefix that was added
// twice is gone after one removal.
func (s *SNAT) Exclude(prefix netip.Prefix, on bool) int32 {
	prefix = prefix.Masked()
	if on {
		s.Excluded[prefix] = true
		return vnet.RetOK
	}
	if !s.Excluded[prefix] {
		return retMissing
	}
	delete(s.Excluded, prefix)
	return vnet.RetOK
}

// address returns the address that replaces sources of the family.
func (s *SNAT) address(like netip.Addr) netip.Addr {
	if like.Is4() {
		return s.IP4
	}
	return s.IP6
}

// replaces reports whether the source of a packet that begins a connection is replaced where it
// leaves.
func (s *SNAT) replaces(t *vnet.Packet, out uint32) bool {
	src, dst := t.Src.Addr(), t.Dst.Addr()
	in := func(swIf uint32, table int) bool { return s.Interfaces[InterfaceTable{swIf, uint8(table)}] }
	outgoing := in(t.InIndex, vnet.Family(src)) && !s.excludes(dst)
	switch s.Policy {
	case policyNone:
		return true
	case policyIfPfx:
		return outgoing
	}
	switch {
	case in(out, tableHost):
		return false
	case outgoing:
		return true
	case !in(t.InIndex, tablePod) && !in(out, tablePod):
		return src != s.address(src)
	default:
		return src == dst
	}
}

// excludes reports whether sources stay on the way to a destination.
func (s *SNAT) excludes(dst netip.Addr) bool {
	for prefix := range s.Excluded {
		if prefix.Contains(dst) {
			return true
		}
	}
	return false
}
