package vnet

import (
	"errors"
	"net/netip"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator/fib"
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
)

// Network is the state of one incarnation of VPP: interfaces, addresses, neighbours, routes and
// feature arcs. It reports changes to the plugins that watch it.
type Network struct {
	clock func() time.Time
	born  time.Time
	Cause string // why VPP crashed, "" while it runs

	Interfaces pool.Pool[*Interface]
	ByName     map[string]uint32 // interface index by name
	Named      uint64            // grows whenever byName changes
	Sources    *fib.Sources
	Tables     [2][]*fib.Table // by address family (ip4, ip6), then by FIB index
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
		Sources:   fib.NewSources(),
		Neighbors: make(map[NeighborKey]*Neighbor),
		Features:  make(map[FeatureKey]int),
		arcs:      make(map[string]uint32),
		Pending:   make(map[uint32]Change),
	}
	n.Tables[0] = []*fib.Table{fib.NewTable(0, false, n.Sources)}
	n.Tables[1] = []*fib.Table{fib.NewTable(0, true, n.Sources)}
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
