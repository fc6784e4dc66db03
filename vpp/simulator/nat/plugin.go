// Package nat is the NAT44-ED plugin of the simulated VPP: address pools, interface roles,
// mappings, sessions, affinity, and the graph nodes that translate packets.
//
//	plugin.go, address.go, interface.go           configuration
//	mapping.go, balance.go, affinity.go           static and load-balancing mappings
//	session.go, summary.go                        the session table
//	transit.go, classify.go, in2out.go, out2in.go a packet on its way through the nodes
//
// The model has VPP's destructive side effects and its defects; each is described at the function
// that has it. Methods return VPP's return codes.
package nat

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Plugin is the state of the NAT44-ED plugin. Other packages of the simulator use the exported
// fields, with the model locked.
type Plugin struct {
	net    *vnet.Network
	random random
	Frozen bool // FreezeMappings: no row fits any more

	// Settings.
	Enabled    bool
	Forwarding bool
	Timeouts   Timeouts
	Config     Config // of the current enable; zero while disabled

	// Tables and limits of the current enable.
	insideVRF  uint32
	insideFIB  uint32
	outsideFIB uint32
	limits     []uint32 // session limit per FIB index; see SetSessionLimit
	PerThread  uint32   // session limit of the enable call

	// Addresses and interfaces.
	Pool    []*Address // addresses for dynamic translations
	Twice   []*Address // addresses for twice-nat
	InOut   vnet.Pool[*Interface]
	Output  vnet.Pool[*Interface]
	outside []fibCount // FIBs of outside interfaces, with reference counts
	fibs    []fibCount // FIBs of any NAT interface, counted as VPP does
	receive map[receiveKey]int

	// Mappings and sessions.
	Mappings vnet.Pool[*Mapping]
	o2i      map[mappingKey]uint32 // by external endpoint, FIB index 0
	i2o      map[mappingKey]uint32 // by local endpoint

	// Counters count packets since VPP started.
	Counters Counters

	sessionTable
	affinities map[affinityKey]*affinity
}

// Counters count first packets of TCP connections from outside, and packets from inside: packets
// that were dropped because they have no session, and packets of protocols other than TCP, UDP and
// ICMP, without and with a session.
type Counters struct {
	NewTCP, SlowDrops, SlowOther, FastOther uint64
}

// Config are the parameters of an enable call.
type Config struct {
	InsideVRF, OutsideVRF, Sessions uint32
}

// Timeouts are session timeouts in seconds.
type Timeouts struct {
	UDP, TCPEstablished, TCPTransitory, ICMP uint32
}

// defaultTimeouts are the timeouts after Enable.
var defaultTimeouts = Timeouts{UDP: 300, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 60}

// defaultSessions is the session limit per thread when an enable call has 0.
const defaultSessions = 63 * 1024

// fibCount is a FIB index with a reference count.
type fibCount struct {
	fib  uint32
	refs int
}

// NewPlugin returns the plugin as it is loaded: disabled, timeouts unset.
func NewPlugin(net *vnet.Network) *Plugin {
	n := &Plugin{net: net}
	n.receive = make(map[receiveKey]int)
	n.dropTables()
	return n
}

// dropTables empties the tables that live from enable to disable.
func (n *Plugin) dropTables() {
	n.Mappings = vnet.Pool[*Mapping]{}
	n.o2i = make(map[mappingKey]uint32)
	n.i2o = make(map[mappingKey]uint32)
	n.sessionTable = newSessionTable()
	n.affinities = make(map[affinityKey]*affinity)
}

// Enable turns the plugin on. Forwarding and timeouts go back to their defaults whatever was set
// before.
func (n *Plugin) Enable(c Config) int32 {
	if n.Enabled {
		return vnet.RetAlreadyEnabled
	}
	if c.Sessions == 0 {
		c.Sessions = defaultSessions
	}
	n.Forwarding, n.Timeouts = false, defaultTimeouts
	n.PerThread = c.Sessions
	n.limits = append(n.limits, c.Sessions)
	n.insideVRF = c.InsideVRF
	n.insideFIB = n.net.FindOrCreateFIB(0, c.InsideVRF)
	n.outsideFIB = n.net.FindOrCreateFIB(0, c.OutsideVRF)
	n.dropTables()
	n.Enabled, n.Config = true, c
	return vnet.RetOK
}

// Disable turns the plugin off: mappings, addresses, interfaces and sessions are gone.
// Load-balancing mappings leave their receive entries in the FIB.
func (n *Plugin) Disable() int32 {
	if !n.Enabled {
		return vnet.RetAlreadyDisabled
	}
	retval := vnet.RetOK
	if n.deleteMappings() != vnet.RetOK {
		retval = vnet.RetBug
	}
	n.deleteAddresses()
	n.deleteInterfaces()
	n.limits = nil
	n.dropTables()
	n.Config = Config{}
	n.Forwarding, n.Enabled = false, false
	return retval
}

// deleteMappings takes down every mapping for disable.
func (n *Plugin) deleteMappings() int32 {
	retval := vnet.RetOK
	var all []*Mapping
	for _, mp := range n.Mappings.All {
		all = append(all, mp)
	}
	for _, mp := range all {
		rv := n.DelStatic(Request{
			Local: mp.Local, External: mp.External, Proto: mp.Proto,
			VRF: mp.VRF, Flags: mp.Flags,
		})
		if rv != vnet.RetOK {
			retval = rv
		}
	}
	n.Mappings = vnet.Pool[*Mapping]{}
	return retval
}

// deleteAddresses empties both address pools for disable.
func (n *Plugin) deleteAddresses() {
	for _, a := range slices.Clone(n.Pool) {
		n.delAddress(a.Addr, false)
	}
	for _, a := range slices.Clone(n.Twice) {
		n.delAddress(a.Addr, true)
	}
	n.Pool, n.Twice = nil, nil
}

// SetForwarding decides what happens to traffic without a translation. Turning it off ends the
// bypass sessions.
func (n *Plugin) SetForwarding(on bool) {
	n.Forwarding = on
	if !n.Enabled || on {
		return
	}
	for _, s := range n.Sessions.All {
		if s.Has(sessionBypass) {
			n.freeSession(s)
		}
	}
}

// SetSessionLimit changes the limit of the VRF's sessions without touching the tables. A limit that
// is set while the plugin is off takes the place of the one of the next enable for that FIB.
func (n *Plugin) SetSessionLimit(limit, vrf uint32) int32 {
	fib, ok := n.net.FIBIndex(0, vrf)
	if !ok {
		return vnet.RetUnspecified
	}
	for uint64(len(n.limits)) <= uint64(fib) {
		n.limits = append(n.limits, n.PerThread)
	}
	n.limits[fib] = limit
	return vnet.RetOK
}

// full reports whether no further session is allowed.
func (n *Plugin) full(fib uint32) bool {
	if uint64(fib) >= uint64(len(n.limits)) {
		fib = 0
	}
	return len(n.limits) > 0 && uint64(n.Sessions.Len()) >= uint64(n.limits[fib])
}

// receiveKey is an external address that VPP receives itself because of an outside interface.
type receiveKey struct {
	addr netip.Addr
	swIf uint32
}

// addReceive counts a reason for a receive entry of addr in the table of an outside interface, and
// installs it for the first one.
func (n *Plugin) addReceive(addr netip.Addr, swIf uint32) {
	key := receiveKey{addr: addr, swIf: swIf}
	if n.receive[key] == 0 {
		if t := n.tableOf(swIf); t != nil {
			path := vnet.Path{Kind: vnet.Receive, SwIf: swIf, Weight: 1}
			t.Set(netip.PrefixFrom(addr, 32), vnet.SourceNAT, []vnet.Path{path})
		}
	}
	n.receive[key]++
}

// delReceive takes back one reason. The entry itself is shared by all interfaces of a table: the
// first interface without a reason removes it.
func (n *Plugin) delReceive(addr netip.Addr, swIf uint32) {
	key := receiveKey{addr: addr, swIf: swIf}
	if n.receive[key] == 0 {
		return
	}
	if n.receive[key]--; n.receive[key] > 0 {
		return
	}
	delete(n.receive, key)
	if t := n.tableOf(swIf); t != nil {
		t.Remove(netip.PrefixFrom(addr, 32), vnet.SourceNAT)
	}
}

// tableOf returns the ip4 table of an interface.
func (n *Plugin) tableOf(swIf uint32) *vnet.Table {
	if i := n.net.Interface(swIf); i != nil {
		return n.net.Table4(i.FIB[0])
	}
	return nil
}

// receiveEverywhere adds or removes the receive entries of an external address on all outside
// interfaces.
func (n *Plugin) receiveEverywhere(addr netip.Addr, add bool) {
	for _, ifs := range []*vnet.Pool[*Interface]{&n.InOut, &n.Output} {
		for _, i := range ifs.All {
			switch {
			case !i.Outside:
			case add:
				n.addReceive(addr, i.SwIf)
			default:
				n.delReceive(addr, i.SwIf)
			}
		}
	}
}

// random is the generator of VPP's NAT: a linear congruential generator with 32 bits of state. Its
// low bits have tiny periods (the lowest one alternates), and VPP reduces it with modulo, so small
// power-of-two weight sums are not random at all when every session takes two numbers. That skew is
// why the model carries the generator instead of a better one.
type random struct {
	seed uint32
}

// next advances the generator.
func (r *random) next() uint32 {
	r.seed = r.seed*1664525 + 1013904223
	return r.seed
}

// port draws a port offset in 0..limit.
func (r *random) port(limit uint16) uint16 {
	wide := r.next()
	if narrow := uint16(wide); narrow <= limit {
		return narrow
	}
	return uint16(wide % (uint32(limit) + 1))
}
