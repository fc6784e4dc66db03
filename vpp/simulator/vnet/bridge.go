package vnet

import "net/netip"

// Bridge is a bridge domain. Only what dumps show is modelled: packets do not pass from member to
// member.
type Bridge struct {
	// ID is bd_id, Virtual the index of its virtual interface.
	ID, Virtual uint32
	// Members are its other interfaces with their split-horizon groups.
	Members []BridgeMember
}

// BridgeMember is an interface in a bridge domain.
type BridgeMember struct {
	Index uint32
	Group uint8
}

// ProxyARP are the addresses, from Low to High, for which some interfaces answer ARP.
type ProxyARP struct {
	Low, High netip.Addr
	// Interfaces are the indices of these interfaces.
	Interfaces []uint32
}
