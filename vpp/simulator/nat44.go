package simulator

import (
	"net/netip"
	"slices"
)

// nat44 is the state of the NAT44-ED plugin.
type nat44 struct {
	m *model

	enabled    bool
	forwarding bool
	mss        uint16
	frameQueue uint32
	wasEnabled bool // ever, in this incarnation
	timeouts   natTimeouts
	config     natConfig // of the current enable; zero while disabled

	insideVRF  uint32
	insideFIB  uint32
	outsideFIB uint32
	limits     []uint32 // session limit per FIB index; see setSessionLimit
	perThread  uint32   // session limit of the enable call

	pool      []*natAddress // addresses for dynamic translations
	twice     []*natAddress // addresses for twice-nat
	followed  []*followedInterface
	unbound   []*boundMapping
	inOut     pool[*natInterface]
	output    pool[*natInterface]
	outside   []fibCount // FIBs of outside interfaces, with reference counts
	fibs      []fibCount // FIBs of any NAT interface, counted as VPP does
	receive   map[receiveKey]int
	vrfTables pool[*vrfTable]

	mappings pool[*mapping]
	o2i      map[mappingKey]uint32 // by external endpoint, FIB index 0
	i2o      map[mappingKey]uint32 // by local endpoint

	sessionTable
	affinities map[affinityKey]*affinity
}

// natConfig is what an enable call asked for.
type natConfig struct {
	insideVRF, outsideVRF, sessions uint32
}

// natTimeouts are session timeouts in seconds.
type natTimeouts struct {
	udp, tcpEstablished, tcpTransitory, icmp uint32
}

// defaultTimeouts are those of a fresh enable.
var defaultTimeouts = natTimeouts{udp: 300, tcpEstablished: 7440, tcpTransitory: 240, icmp: 60}

// defaultSessions is the session limit per thread when an enable asks for 0.
const defaultSessions = 63 * 1024

// fibCount is a FIB index with a reference count.
type fibCount struct {
	fib  uint32
	refs int
}

// newNAT44 returns the plugin as it is loaded: disabled, timeouts unset.
func newNAT44(m *model) *nat44 {
	n := &nat44{m: m}
	n.receive = make(map[receiveKey]int)
	n.dropTables()
	return n
}

// dropTables empties the tables that live from enable to disable.
func (n *nat44) dropTables() {
	n.mappings = pool[*mapping]{}
	n.o2i = make(map[mappingKey]uint32)
	n.i2o = make(map[mappingKey]uint32)
	n.sessionTable = newSessionTable()
	n.affinities = make(map[affinityKey]*affinity)
}

// enable turns the plugin on. Forwarding and timeouts go back to their
// defaults whatever was set before.
func (n *nat44) enable(c natConfig) int32 {
	if n.enabled {
		return retAlreadyEnabled
	}
	if c.sessions == 0 {
		c.sessions = defaultSessions
	}
	n.forwarding, n.mss, n.timeouts = false, 0, defaultTimeouts
	n.perThread = c.sessions
	n.limits = append(n.limits, c.sessions)
	n.insideVRF = c.insideVRF
	n.insideFIB = n.m.findOrCreateFIB(0, c.insideVRF)
	n.outsideFIB = n.m.findOrCreateFIB(0, c.outsideVRF)
	n.dropTables()
	if n.frameQueue == 0 {
		n.frameQueue = defaultFrameQueue
	}
	n.enabled, n.wasEnabled, n.config = true, true, c
	return retOK
}

// disable turns the plugin off: mappings, addresses, interfaces and sessions
// are gone. Load-balancing mappings leave their receive entries in the FIB.
func (n *nat44) disable() int32 {
	if !n.enabled {
		return retAlreadyDisabled
	}
	retval := retOK
	if n.deleteMappings() != retOK {
		retval = retBug
	}
	n.deleteAddresses()
	n.deleteInterfaces()
	n.vrfTables = pool[*vrfTable]{}
	n.limits = nil
	n.dropTables()
	n.config = natConfig{}
	n.forwarding, n.enabled = false, false
	return retval
}

// deleteMappings takes down every mapping for disable.
func (n *nat44) deleteMappings() int32 {
	retval := retOK
	var all []*mapping
	for _, mp := range n.mappings.all {
		all = append(all, mp)
	}
	for _, mp := range all {
		rv := n.delStatic(staticRequest{
			local: mp.local, external: mp.external, proto: mp.proto,
			vrf: mp.vrf, flags: mp.flags,
		})
		if rv != retOK {
			retval = rv
		}
	}
	n.mappings = pool[*mapping]{}
	n.unbound = nil
	return retval
}

// deleteAddresses empties both address pools for disable.
func (n *nat44) deleteAddresses() {
	for _, a := range slices.Clone(n.pool) {
		n.delAddress(a.addr, false)
	}
	for _, a := range slices.Clone(n.twice) {
		n.delAddress(a.addr, true)
	}
	n.pool, n.twice, n.followed = nil, nil, nil
}

// setForwarding decides what happens to traffic without a translation.
// Turning it off ends the bypass sessions.
func (n *nat44) setForwarding(on bool) {
	n.forwarding = on
	if !n.enabled || on {
		return
	}
	for _, s := range n.sessions.all {
		if s.has(sessionBypass) {
			n.freeSession(s)
		}
	}
}

// setSessionLimit changes the limit of the VRF's sessions without touching
// the tables. A limit that is set while the plugin is off takes the place of
// the one of the next enable for that FIB.
func (n *nat44) setSessionLimit(limit, vrf uint32) int32 {
	fib, ok := n.m.fibIndex(0, vrf)
	if !ok {
		return retUnspecified
	}
	for uint64(len(n.limits)) <= uint64(fib) {
		n.limits = append(n.limits, n.perThread)
	}
	n.limits[fib] = limit
	return retOK
}

// full reports whether no further session is allowed.
func (n *nat44) full(fib uint32) bool {
	if uint64(fib) >= uint64(len(n.limits)) {
		fib = 0
	}
	return len(n.limits) > 0 && uint64(n.sessions.len()) >= uint64(n.limits[fib])
}

// usesFIB reports whether NAT holds a table that is otherwise unused.
func (n *nat44) usesFIB(fib uint32) bool {
	if n.enabled && (fib == n.insideFIB || fib == n.outsideFIB) {
		return true
	}
	for _, mp := range n.mappings.all {
		if mp.fib == fib {
			return true
		}
		for _, l := range mp.locals.all {
			if l.fib == fib {
				return true
			}
		}
	}
	return slices.ContainsFunc(n.pool, func(a *natAddress) bool { return a.fib == fib }) ||
		slices.ContainsFunc(n.twice, func(a *natAddress) bool { return a.fib == fib })
}

// tableGone expires the sessions of a deleted table.
func (n *nat44) tableGone(fib uint32) {
	n.expireVRF(fib)
}

// receiveKey is an external address that VPP receives itself because of an
// outside interface.
type receiveKey struct {
	addr netip.Addr
	swIf uint32
}

// addReceive counts a reason for a receive entry of addr in the table of an
// outside interface, and installs it for the first one.
func (n *nat44) addReceive(addr netip.Addr, swIf uint32) {
	key := receiveKey{addr: addr, swIf: swIf}
	if n.receive[key] == 0 {
		if t := n.tableOf(swIf); t != nil {
			path := fibPath{kind: pathLocal, swIf: swIf, weight: 1}
			t.set(netip.PrefixFrom(addr, 32), sourceNAT, []fibPath{path})
		}
	}
	n.receive[key]++
}

// delReceive takes back one reason. The entry itself is shared by all
// interfaces of a table: the first interface without a reason removes it.
func (n *nat44) delReceive(addr netip.Addr, swIf uint32) {
	key := receiveKey{addr: addr, swIf: swIf}
	if n.receive[key] == 0 {
		return
	}
	if n.receive[key]--; n.receive[key] > 0 {
		return
	}
	delete(n.receive, key)
	if t := n.tableOf(swIf); t != nil {
		t.remove(netip.PrefixFrom(addr, 32), sourceNAT)
	}
}

// tableOf returns the ip4 table of an interface.
func (n *nat44) tableOf(swIf uint32) *fibTable {
	if i := n.m.iface(swIf); i != nil {
		return n.m.table4(i.fib[0])
	}
	return nil
}

// receiveEverywhere adds or removes the receive entries of an external
// address on all outside interfaces.
func (n *nat44) receiveEverywhere(addr netip.Addr, add bool) {
	for _, ifs := range []*pool[*natInterface]{&n.inOut, &n.output} {
		for _, i := range ifs.all {
			switch {
			case !i.outside:
			case add:
				n.addReceive(addr, i.swIf)
			default:
				n.delReceive(addr, i.swIf)
			}
		}
	}
}
