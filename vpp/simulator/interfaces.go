package simulator

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// swInterface is one software interface.
type swInterface struct {
	index    uint32
	name     string
	devType  string // interface_dev_type of the dump
	tag      string
	mac      [6]byte
	adminUp  bool
	linkUp   bool
	addrs    []netip.Prefix // in the order in which they were added
	fib      [2]uint32      // FIB index per address family
	instance uint32         // loopback instance
	borrows  uint32         // unnumbered: index of the interface that lends addresses

	hostName      string // tap, af_packet: name of the host side
	hostNamespace string // tap: name of the host side's namespace
}

// Device types as they appear in interface dumps.
const (
	devLoopback = "Loopback"
	devAfPacket = "af_packet"
	devTap      = "virtio"
)

// interfaceChange collects what happened to an interface since the last
// events were sent.
type interfaceChange struct {
	adminUp, linkUp, deleted bool
}

// addInterface stores an interface, announces it and returns its index.
func (m *model) addInterface(i *swInterface) uint32 {
	i.borrows = none
	i.index = m.interfaces.put(i)
	m.byName[i.name] = i.index
	m.named++
	m.announce(i.index, interfaceChange{})
	return i.index
}

// iface returns the interface with the given index, or nil.
func (m *model) iface(index uint32) *swInterface {
	i, _ := m.interfaces.get(index)
	return i
}

// announce merges a change into the events that go out next.
func (m *model) announce(index uint32, c interfaceChange) {
	old := m.pending[index]
	m.pending[index] = interfaceChange{
		adminUp: old.adminUp || c.adminUp,
		linkUp:  old.linkUp || c.linkUp,
		deleted: old.deleted || c.deleted,
	}
}

// createLoopback makes a loopback interface. A specified instance that is
// taken is an error.
func (m *model) createLoopback(mac [6]byte, specified bool, instance uint32) (uint32, int32) {
	if specified {
		if _, taken := m.byName[fmt.Sprintf("loop%d", instance)]; taken {
			return none, retInvalidRegistration
		}
	} else {
		for instance = 0; ; instance++ {
			if _, taken := m.byName[fmt.Sprintf("loop%d", instance)]; !taken {
				break
			}
		}
	}
	if mac == [6]byte{} {
		mac = [6]byte{0xde, 0xad, 0, 0, 0, byte(instance)}
	}
	return m.addInterface(&swInterface{
		name:     fmt.Sprintf("loop%d", instance),
		devType:  devLoopback,
		mac:      mac,
		instance: instance,
	}), retOK
}

// deleteInterface removes an interface with everything that hangs on it: NAT
// roles, addresses, neighbours, features.
func (m *model) deleteInterface(i *swInterface) {
	m.setAdmin(i, false)
	for len(i.addrs) > 0 {
		m.delAddress(i, i.addrs[0])
	}
	m.nat.interfaceGone(i.index)
	m.acls.interfaceGone(i.index)
	for key := range m.neighbors {
		if key.swIf == i.index {
			m.delNeighbor(key)
		}
	}
	for key := range m.features {
		if key.swIf == i.index {
			delete(m.features, key)
		}
	}
	m.interfaces.remove(i.index)
	delete(m.byName, i.name)
	m.named++
	m.announce(i.index, interfaceChange{deleted: true})
}

// setAdmin changes the admin state; the link follows it, and the routes of
// the interface addresses exist only while it is up.
func (m *model) setAdmin(i *swInterface, up bool) {
	if i.adminUp == up {
		return
	}
	i.adminUp, i.linkUp = up, up
	for _, p := range i.addrs {
		m.connect(i, p, up)
	}
	m.announce(i.index, interfaceChange{adminUp: up, linkUp: up})
}

// addAddress gives an interface an address. Overlapping subnets are refused
// within one table, except for further addresses of the same subnet on the
// same interface.
func (m *model) addAddress(i *swInterface, p netip.Prefix) int32 {
	fam := family(p.Addr())
	for _, other := range m.interfaces.all {
		if other.fib[fam] != i.fib[fam] {
			continue
		}
		for _, q := range other.addrs {
			if family(q.Addr()) != fam || !p.Masked().Overlaps(q.Masked()) {
				continue
			}
			if other == i && p.Bits() == q.Bits() && p.Addr() != q.Addr() {
				continue
			}
			if fam == 1 && other == i && p == q {
				return retDuplicateIfAddress
			}
			return retAddressInUse
		}
	}
	i.addrs = append(i.addrs, p)
	if i.adminUp {
		m.connect(i, p, true)
	}
	m.nat.addressAdded(i, p)
	return retOK
}

// delAddress takes an address from an interface.
func (m *model) delAddress(i *swInterface, p netip.Prefix) int32 {
	at := slices.Index(i.addrs, p)
	if at < 0 {
		return retAddressNotFound
	}
	i.addrs = slices.Delete(i.addrs, at, at+1)
	if i.adminUp {
		m.connect(i, p, false)
	}
	m.nat.addressDeleted(i, p)
	return retOK
}

// connect adds or removes the routes that belong to an interface address: the
// address itself, its subnet, and the subnet's first and last address.
func (m *model) connect(i *swInterface, p netip.Prefix, up bool) {
	table := m.tables[family(p.Addr())][i.fib[family(p.Addr())]]
	host := netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
	local := fibPath{kind: pathLocal, swIf: i.index, nextHop: p.Addr(), weight: 1}
	defer m.readjoin(i)
	if !up {
		table.remove(host, sourceInterface)
		if p != host && !shared(i, p) {
			table.remove(p, sourceInterface)
			for _, edge := range subnetEdges(p) {
				table.remove(edge, sourceInterface)
			}
		}
		return
	}
	if p != host {
		table.set(p, sourceInterface, []fibPath{{kind: pathAttached, swIf: i.index, weight: 1}})
		for _, edge := range subnetEdges(p) {
			table.set(edge, sourceInterface, []fibPath{{kind: pathDrop, swIf: none, weight: 1}})
		}
	}
	table.set(host, sourceInterface, []fibPath{local})
}

// shared reports whether another address of the interface lies in the subnet
// of p.
func shared(i *swInterface, p netip.Prefix) bool {
	return slices.ContainsFunc(i.addrs, func(q netip.Prefix) bool {
		return q != p && q.Masked() == p.Masked()
	})
}

// subnetEdges returns the first and last address of an ip4 subnet with more
// than two addresses: VPP drops packets to them.
func subnetEdges(p netip.Prefix) []netip.Prefix {
	if !p.Addr().Is4() || p.Bits() > 30 {
		return nil
	}
	first := p.Masked().Addr()
	last := first.As4()
	for bit := p.Bits(); bit < 32; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	return []netip.Prefix{netip.PrefixFrom(first, 32), netip.PrefixFrom(netip.AddrFrom4(last), 32)}
}

// firstIP4 returns the first ip4 address of an interface.
func (i *swInterface) firstIP4() (netip.Addr, bool) {
	for _, p := range i.addrs {
		if p.Addr().Is4() {
			return p.Addr(), true
		}
	}
	return netip.Addr{}, false
}

// hasAddress reports whether addr is configured on the interface, or on the
// one that lends it its addresses.
func (m *model) hasAddress(i *swInterface, addr netip.Addr) bool {
	if lender := m.iface(i.borrows); i.borrows != none && lender != nil {
		i = lender
	}
	return slices.ContainsFunc(i.addrs, func(p netip.Prefix) bool { return p.Addr() == addr })
}

// bindTable moves an interface to another table. VPP refuses while it has
// addresses of that family.
func (m *model) bindTable(i *swInterface, fam int, tableID uint32) int32 {
	index, ok := m.fibIndex(fam, tableID)
	if !ok {
		return retNoSuchFIB
	}
	for _, p := range i.addrs {
		if family(p.Addr()) == fam {
			return retAddressFoundForInterface
		}
	}
	if fam == 0 {
		m.nat.tableBound(i.index, index, i.fib[0])
	}
	i.fib[fam] = index
	return retOK
}

// matchesFilter implements the name filter of interface dumps: any substring,
// regardless of case.
func matchesFilter(name, filter string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(filter))
}
