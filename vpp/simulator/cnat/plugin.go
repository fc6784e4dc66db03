// Package cnat is the cnat plugin of the simulated VPP: translations, source NAT, and the data path
// of its feature nodes, which an agent has on all interfaces of clients and backends. Packets
// through an interface without them are not translated; VPP would do so at the FIB entry of the
// VIP.
package cnat

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Endpoint is an address with a port, or an interface whose address counts.
type Endpoint struct {
	Addr netip.Addr
	SwIf uint32 // none where the address counts
	Port uint16
}

// Path is one backend of a translation.
type Path struct {
	Dst, Src Endpoint
	Flags    uint8
}

// FlagActive is in the flags of every path that VPP can resolve, beside the flags of the client.
const FlagActive = 1

// Key is what identifies a translation to VPP.
type Key struct {
	VIP   Endpoint
	Proto uint8
}

// Translation is what VPP does with the packets to a VIP and port. A dump returns all fields except
// RealIP, Flags and Hash.
type Translation struct {
	Key
	RealIP uint8  // of the request that added it
	Flags  uint8  // of the last request
	LBType uint8  // of the request that added it
	Hash   uint32 // of the request that added it
	Paths  []Path
}

// Plugin is the state of the plugin in one incarnation of VPP. It is guarded by VPP.mu.
type Plugin struct {
	net          *vnet.Network
	Translations vnet.Pool[*Translation] // by id
	ids          map[Key]uint32
	users        map[netip.Addr]int  // translations and sessions, by VIP
	real         map[netip.Addr]bool // VIPs that stay addresses of their own
	sessions     map[sessionKey]*session
	scanned      float64 // when sessions were scanned
	sources      map[source]bool
	lowest       map[uint8]uint16 // by protocol: no source port below it is free
	noPort       uint64           // packets that were dropped because no source port was free
	SNAT         SNAT
}

// NewPlugin returns the state after the start of VPP.
func NewPlugin(net *vnet.Network) *Plugin {
	return &Plugin{
		net: net, ids: make(map[Key]uint32), users: make(map[netip.Addr]int), real: make(map[netip.Addr]bool), sessions: make(map[sessionKey]*session),
		sources: make(map[source]bool), lowest: make(map[uint8]uint16), SNAT: newSNAT(),
	}
}

// Update adds a translation, or changes the one of the same key in place, and returns its id. The
// plugin keeps t.
func (p *Plugin) Update(t *Translation) uint32 {
	for i := range t.Paths {
		t.Paths[i].Flags |= FlagActive
	}
	id, known := p.ids[t.Key]
	if !known {
		p.hold(t.VIP.Addr, t.RealIP != 0)
		id = p.Translations.Put(t)
		p.ids[t.Key] = id
		return id
	}
	if old, ok := p.Translations.Get(id); ok {
		old.Flags, old.Paths = t.Flags, t.Paths
	}
	return id
}

// Delete deletes a translation. Its id is the next one to be given away.
func (p *Plugin) Delete(id uint32) int32 {
	t, ok := p.Translations.Get(id)
	if !ok {
		return vnet.RetNoSuchEntry
	}
	delete(p.ids, t.Key)
	p.Translations.Remove(id)
	p.release(t.VIP.Addr)
	return vnet.RetOK
}

// BelowICMP reports whether an address without an entry of its own is covered by a route that
// answers with ICMP.
func (p *Plugin) BelowICMP(addr netip.Addr) bool {
	e := p.net.Tables[vnet.Family(addr)][0].Lookup(host(addr))
	kind := e.Best().Paths[0].Kind
	return e.Prefix.Bits() < addr.BitLen() && (kind == vnet.Unreach || kind == vnet.Prohibit)
}

// RealBelowICMP reports whether BelowICMP is true for a VIP that stays an address of its own.
func (p *Plugin) RealBelowICMP() bool {
	for vip, is := range p.real {
		if is && p.BelowICMP(vip) {
			return true
		}
	}
	return false
}

// hold counts one more user of a VIP. The first one makes its entry in the default table, by which
// packets that were not translated are dropped; with realIP there is no entry.
func (p *Plugin) hold(vip netip.Addr, realIP bool) {
	if p.users[vip]++; p.users[vip] > 1 {
		return
	}
	if p.real[vip] = realIP; !realIP {
		p.net.Tables[vnet.Family(vip)][0].Set(host(vip), vnet.SourceCNAT, []vnet.Path{{Kind: vnet.Drop, SwIf: vnet.None, Weight: 1}})
	}
}

// release is the opposite of hold: the last translation or session takes the entry with it.
func (p *Plugin) release(vip netip.Addr) {
	if p.users[vip]--; p.users[vip] == 0 {
		delete(p.users, vip)
		delete(p.real, vip)
		p.net.Tables[vnet.Family(vip)][0].Remove(host(vip), vnet.SourceCNAT)
	}
}

func host(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, addr.BitLen()) }

// Purge deletes all sessions and, with them, all translations.
func (p *Plugin) Purge() {
	p.end(func(*session) bool { return true })
	for id := range p.Translations.All {
		p.Delete(id)
	}
}

// Show is what "show cnat snat-policy" prints, without the details of the hash table.
func (s *SNAT) Show(nameOf func(uint32) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Source NAT\n  ip4: %s;0\n  ip6: %s;0\n\nExcluded prefixes:\n  Hash table 'snat prefixes'\n", s.IP4, s.IP6)
	order := func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	}
	for i, p := range slices.SortedFunc(maps.Keys(s.Excluded), order) {
		fmt.Fprintf(&b, "[%d]: heap offset 0, len 1, refcnt 1, linear 0\n    0: %s\n", i, p)
	}
	for table, name := range []string{"Included v4", "Included v6", "k8s pod", "k8s host"} {
		fmt.Fprintf(&b, "\n%s interfaces:\n", name)
		for _, i := range slices.SortedFunc(maps.Keys(s.Interfaces), func(a, b InterfaceTable) int { return cmp.Compare(a.SwIf, b.SwIf) }) {
			if int(i.Table) == table {
				fmt.Fprintf(&b, "  %s\n", nameOf(i.SwIf))
			}
		}
	}
	return b.String()
}

// Describe lists the configuration.
func (p *Plugin) Describe(nameOf func(uint32) string) []string {
	var lines []string
	for id, t := range p.Translations.All {
		lines = append(lines, fmt.Sprintf("translation %d: %s port %d proto %d lb %d real %d flags %d hash %d",
			id, t.VIP.Addr, t.VIP.Port, t.Proto, t.LBType, t.RealIP, t.Flags, t.Hash))
		for i, path := range t.Paths {
			lines = append(lines, fmt.Sprintf("translation %d path %d: %s port %d flags %d", id, i, path.Dst.Addr, path.Dst.Port, path.Flags))
		}
	}
	s := &p.SNAT
	if s.Policy != 0 || !s.IP4.IsUnspecified() || !s.IP6.IsUnspecified() {
		lines = append(lines, fmt.Sprintf("snat policy %d addresses %s %s", s.Policy, s.IP4, s.IP6))
	}
	for i := range s.Interfaces {
		lines = append(lines, fmt.Sprintf("snat table %d: %s", i.Table, nameOf(i.SwIf)))
	}
	for prefix := range s.Excluded {
		lines = append(lines, fmt.Sprintf("snat excludes %s", prefix))
	}
	return lines
}
