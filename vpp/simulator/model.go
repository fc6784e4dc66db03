package simulator

import (
	"net/netip"
	"time"
)

// none is VPP's "no index": ~0.
const none = ^uint32(0)

// model is the state of one incarnation of VPP. It is guarded by VPP.mu.
type model struct {
	clock   func() time.Time
	workers int
	born    time.Time
	cause   string // why VPP died, "" while it lives

	interfaces pool[*swInterface]
	byName     map[string]uint32 // interface index by name
	named      uint64            // grows whenever byName changes
	sources    *fibSources
	tables     [2][]*fibTable // by address family (ip4, ip6), then by FIB index
	neighbors  map[neighborKey]*neighbor
	features   map[featureKey]int // how often a feature is on an arc

	subscribers map[uint32]uint32 // interface events: pid by client index
	pending     map[uint32]interfaceChange

	random vppRandom
	nat    *nat44
	acls   *acls
	frozen bool // FillMappings: no row fits any more
}

// newModel returns the state of VPP right after its start: local0 and two
// empty default tables.
func newModel(opts Options) *model {
	m := &model{
		clock:       opts.Clock,
		workers:     opts.NATWorkers,
		byName:      make(map[string]uint32),
		sources:     newFibSources(),
		neighbors:   make(map[neighborKey]*neighbor),
		features:    make(map[featureKey]int),
		subscribers: make(map[uint32]uint32),
		pending:     make(map[uint32]interfaceChange),
		random:      vppRandom{seed: opts.Seed},
	}
	m.born = m.clock()
	m.tables[0] = []*fibTable{newFibTable(0, false, m.sources)}
	m.tables[1] = []*fibTable{newFibTable(0, true, m.sources)}
	m.nat = newNAT44(m)
	m.acls = newACLs()
	m.addInterface(&swInterface{name: "local0", devType: "local"})
	clear(m.pending)
	return m
}

// die marks VPP as dead. The caller returns at once; the incarnation is buried
// when the current request or packet is over.
func (m *model) die(cause string) {
	if m.cause == "" {
		m.cause = cause
	}
}

// now returns the time of the data path in seconds since VPP started.
func (m *model) now() float64 {
	return m.clock().Sub(m.born).Seconds()
}

// family returns the index into model.tables for an address.
func family(addr netip.Addr) int {
	if addr.Is4() {
		return 0
	}
	return 1
}
