package cnat

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Policies and interface tables of source NAT, by number.
const (
	policies = 3 // none, by interface and prefix, Kubernetes
	tables   = 4 // include ip4, include ip6, pod, host
)

// retMissing is what VPP returns for an unknown policy, and for the removal of a prefix that is not there. It is no error code.
const retMissing int32 = 1

// InterfaceTable is an interface in one of the tables of the policy.
type InterfaceTable struct {
	SwIf  uint32
	Table uint8
}

// SNAT is what decides about source NAT. No message reads it but the one for the addresses.
type SNAT struct {
	IP4, IP6   netip.Addr
	SwIf       uint32
	Policy     uint8
	Interfaces map[InterfaceTable]bool // survives its interface: the next one of that index inherits it
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

// Exclude makes a prefix one that is never source-NATed, or takes it back. A prefix that was added twice is gone after one removal.
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
