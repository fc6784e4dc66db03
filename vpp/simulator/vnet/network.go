// Package vnet is layer 2 and 3 of the simulated VPP: interfaces, addresses, neighbours, the
// forwarding tables, feature arcs, VPP's allocator (Pool), and the return codes of the binary API.
// Plugins (packages nat and cnat, access lists) watch it for interfaces and addresses that come and
// go.
//
// A Network is not safe for concurrent use: package simulator locks the whole model, as one main
// thread serves all API clients of a real VPP.
package vnet

import (
	"errors"
	"net/netip"
	"time"
)

// Network is the state of one incarnation of VPP: interfaces, addresses, neighbours, routes and
// feature arcs. It reports changes to the plugins that watch it.
type Network struct {
	clock func() time.Time
	born  time.Time
	Cause string // why VPP crashed, "" while it runs

	Interfaces Pool[*Interface]
	ByName     map[string]uint32 // interface index by name
	Named      uint64            // grows whenever byName changes
	Sources    *Sources
	Tables     [2][]*Table // by address family (ip4, ip6), then by FIB index
	Neighbors  map[NeighborKey]*Neighbor
	Features   map[FeatureKey]int // how often a feature is on an arc
	arcs       map[string]uint32  // how many interfaces an arc has room for
	Pending    map[uint32]Change
	Bridges    []Bridge
	Proxied    ProxyARP
	watchers   []Watcher
}

// ErrNoInterface is returned for a name or index that does not exist.
var ErrNoInterface = errors.New("no such interface")

// Watcher is a plugin that keeps state about interfaces and addresses, as with the callbacks of
// VPP's ip4_main and its interface functions.
type Watcher interface {
	InterfaceGone(swIf uint32)
	AddressAdded(i *Interface, p netip.Prefix)
	AddressDeleted(i *Interface, p netip.Prefix)
	TableBound(swIf, to, from uint32)
}

// NewNetwork returns two empty default tables and no interface.
func NewNetwork(clock func() time.Time) *Network {
	n := &Network{
		clock:     clock,
		born:      clock(),
		ByName:    make(map[string]uint32),
		Sources:   NewSources(),
		Neighbors: make(map[NeighborKey]*Neighbor),
		Features:  make(map[FeatureKey]int),
		arcs:      make(map[string]uint32),
		Pending:   make(map[uint32]Change),
	}
	n.Tables[0] = []*Table{NewTable(0, false, n.Sources)}
	n.Tables[1] = []*Table{NewTable(0, true, n.Sources)}
	return n
}

// Watch reports all later changes to a plugin, after earlier watchers.
func (m *Network) Watch(w Watcher) { m.watchers = append(m.watchers, w) }

// Die marks VPP as crashed. The caller returns at once; the incarnation ends after the current
// request or packet.
func (m *Network) Die(cause string) {
	if m.Cause == "" {
		m.Cause = cause
	}
}

// Now returns the time of the data path in seconds since VPP started.
func (m *Network) Now() float64 {
	return m.clock().Sub(m.born).Seconds()
}

// Family returns the index into Network.Tables for an address.
func Family(addr netip.Addr) int {
	if addr.Is4() {
		return 0
	}
	return 1
}

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

// FeatureKey is a node on a feature arc of an interface.
type FeatureKey struct {
	SwIf      uint32
	Arc, Node string
}

// SetFeature puts a node on an arc or takes it off. Taking off what is not there does nothing.
func (m *Network) SetFeature(swIf uint32, arc, node string, on bool) {
	m.arcs[arc] = max(m.arcs[arc], swIf+1)
	key := FeatureKey{SwIf: swIf, Arc: arc, Node: node}
	switch {
	case on:
		m.Features[key]++
	case m.Features[key] > 1:
		m.Features[key]--
	default:
		delete(m.Features, key)
	}
}

// Covers reports whether an interface of this index or a later one ever had a feature on an arc. On
// the input arcs every interface has one of its own.
func (m *Network) Covers(swIf uint32, arc string) bool {
	return arc == "ip4-unicast" || arc == "ip6-unicast" || swIf < m.arcs[arc]
}

// Has reports whether a node is on an arc.
func (m *Network) Has(swIf uint32, arc, node string) bool {
	return m.Features[FeatureKey{SwIf: swIf, Arc: arc, Node: node}] > 0
}

// Return codes of VPP (vnet/error.h) that the simulated handlers use. The values are part of VPP's
// binary API.
const (
	RetOK                       int32 = 0
	RetUnspecified              int32 = -1
	RetInvalidSwIfIndex         int32 = -2
	RetNoSuchFIB                int32 = -3
	RetNoSuchEntry              int32 = -6
	RetInvalidValue             int32 = -7
	RetInvalidValue2            int32 = -8
	RetUnimplemented            int32 = -9
	RetInvalidSwIfIndex2        int32 = -10
	RetFeatureDisabled          int32 = -30
	RetInvalidRegistration      int32 = -31
	RetNoPathsInRoute           int32 = -52
	RetInvalidSrcAddress        int32 = -57
	RetInvalidDstAddress        int32 = -58
	RetAddressNotFound          int32 = -60
	RetValueExist               int32 = -81
	RetInvalidWorker            int32 = -89
	RetAddressInUse             int32 = -105
	RetUnsupported              int32 = -126
	RetEntryAlreadyExists       int32 = -116
	RetDuplicateIfAddress       int32 = -127
	RetACLInUseInbound          int32 = -142
	RetACLInUseOutbound         int32 = -143
	RetAddressFoundForInterface int32 = -114
	RetNoMatchingInterface      int32 = -54
	RetInvalidPrefixLength      int32 = -171
	RetInvalidProtocol          int32 = -153
	RetLimitExceeded            int32 = -162
	RetEagain                   int32 = -165
	RetBug                      int32 = -168
	RetAlreadyDisabled          int32 = -169
	RetAlreadyEnabled           int32 = -170
)
