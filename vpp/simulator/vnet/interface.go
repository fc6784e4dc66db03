package vnet

import (
	"fmt"
	"net/netip"
	"slices"
)

// Interface is one software interface.
type Interface struct {
	Index    uint32
	Name     string
	DevType  string // interface_dev_type of the dump
	MAC      [6]byte
	AdminUp  bool
	LinkUp   bool
	Addrs    []netip.Prefix // in the order in which they were added
	FIB      [2]uint32      // FIB index per address family
	Instance uint32         // loopback instance
	Borrows  uint32         // unnumbered: index of the interface that lends addresses
}

// Device types as they appear in interface dumps.
const (
	DevLoopback = "Loopback"
	DevAfPacket = "af_packet"
	DevTap      = "virtio"
)

// Change collects what happened to an interface since the last events were sent.
type Change struct {
	AdminUp, LinkUp, Deleted bool
}

// AddInterface stores an interface, announces it and returns its index.
func (m *Network) AddInterface(i *Interface) uint32 {
	i.Borrows = None
	i.Index = m.Interfaces.Put(i)
	m.ByName[i.Name] = i.Index
	m.Named++
	m.announce(i.Index, Change{})
	return i.Index
}

// Interface returns the interface with the given index, or nil.
func (m *Network) Interface(index uint32) *Interface {
	i, _ := m.Interfaces.Get(index)
	return i
}

// announce merges a change into the events that go out next.
func (m *Network) announce(index uint32, c Change) {
	old := m.Pending[index]
	m.Pending[index] = Change{
		AdminUp: old.AdminUp || c.AdminUp,
		LinkUp:  old.LinkUp || c.LinkUp,
		Deleted: old.Deleted || c.Deleted,
	}
}

// CreateLoopback makes a loopback interface with the first free instance number.
func (m *Network) CreateLoopback(mac [6]byte) uint32 {
	instance := uint32(0)
	for ; ; instance++ {
		if _, taken := m.ByName[fmt.Sprintf("loop%d", instance)]; !taken {
			break
		}
	}
	if mac == [6]byte{} {
		mac = [6]byte{0xde, 0xad, 0, 0, 0, byte(instance)}
	}
	return m.AddInterface(&Interface{
		Name:     fmt.Sprintf("loop%d", instance),
		DevType:  DevLoopback,
		MAC:      mac,
		Instance: instance,
	})
}

// DeleteInterface removes an interface with everything that hangs on it: NAT roles, addresses,
// neighbours, features.
func (m *Network) DeleteInterface(i *Interface) {
	m.SetAdmin(i, false)
	for len(i.Addrs) > 0 {
		m.DelAddress(i, i.Addrs[0])
	}
	for _, w := range m.watchers {
		w.InterfaceGone(i.Index)
	}
	for key := range m.Neighbors {
		if key.SwIf == i.Index {
			m.DelNeighbor(key)
		}
	}
	for key := range m.Features {
		if key.SwIf == i.Index {
			delete(m.Features, key)
		}
	}
	m.Interfaces.Remove(i.Index)
	delete(m.ByName, i.Name)
	m.Named++
	m.announce(i.Index, Change{Deleted: true})
}

// SetAdmin changes the admin state; the link follows it, and the routes of the interface addresses
// exist only while it is up.
func (m *Network) SetAdmin(i *Interface, up bool) {
	if i.AdminUp == up {
		return
	}
	i.AdminUp, i.LinkUp = up, up
	for _, p := range i.Addrs {
		m.connect(i, p, up)
	}
	m.announce(i.Index, Change{AdminUp: up, LinkUp: up})
}

// AddAddress gives an interface an address. Overlapping subnets are refused within one table,
// except for further addresses of the same subnet on the same interface.
func (m *Network) AddAddress(i *Interface, p netip.Prefix) int32 {
	fam := Family(p.Addr())
	for _, other := range m.Interfaces.All {
		if other.FIB[fam] != i.FIB[fam] {
			continue
		}
		for _, q := range other.Addrs {
			if Family(q.Addr()) != fam || !p.Masked().Overlaps(q.Masked()) {
				continue
			}
			if other == i && p.Bits() == q.Bits() && p.Addr() != q.Addr() {
				continue
			}
			if fam == 1 && other == i && p == q {
				return RetDuplicateIfAddress
			}
			return RetAddressInUse
		}
	}
	i.Addrs = append(i.Addrs, p)
	if i.AdminUp {
		m.connect(i, p, true)
	}
	for _, w := range m.watchers {
		w.AddressAdded(i, p)
	}
	return RetOK
}

// DelAddress takes an address from an interface.
func (m *Network) DelAddress(i *Interface, p netip.Prefix) int32 {
	at := slices.Index(i.Addrs, p)
	if at < 0 {
		return RetAddressNotFound
	}
	i.Addrs = slices.Delete(i.Addrs, at, at+1)
	if i.AdminUp {
		m.connect(i, p, false)
	}
	for _, w := range m.watchers {
		w.AddressDeleted(i, p)
	}
	return RetOK
}

// connect adds or removes the routes that belong to an interface address: the address itself, its
// subnet, and the subnet's first and last address.
func (m *Network) connect(i *Interface, p netip.Prefix, up bool) {
	table := m.Tables[Family(p.Addr())][i.FIB[Family(p.Addr())]]
	host := netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
	local := Path{Kind: Receive, SwIf: i.Index, NextHop: p.Addr(), Weight: 1}
	defer m.readjoin(i)
	if !up {
		table.Remove(host, SourceInterface)
		shared := slices.ContainsFunc(i.Addrs, func(q netip.Prefix) bool { return q != p && q.Masked() == p.Masked() })
		if p != host && !shared {
			table.Remove(p, SourceInterface)
			for _, edge := range subnetEdges(p) {
				table.Remove(edge, SourceInterface)
			}
		}
		return
	}
	if p != host {
		table.Set(p, SourceInterface, []Path{{Kind: Attached, SwIf: i.Index, Weight: 1}})
		for _, edge := range subnetEdges(p) {
			table.Set(edge, SourceInterface, []Path{{Kind: Drop, SwIf: None, Weight: 1}})
		}
	}
	table.Set(host, SourceInterface, []Path{local})
}

// subnetEdges returns the first and last address of an ip4 subnet with more than two addresses: VPP
// drops packets to them.
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

// HasAddress reports whether addr is configured on the interface, or on the one that lends it its
// addresses.
func (m *Network) HasAddress(i *Interface, addr netip.Addr) bool {
	if lender := m.Interface(i.Borrows); i.Borrows != None && lender != nil {
		i = lender
	}
	return slices.ContainsFunc(i.Addrs, func(p netip.Prefix) bool { return p.Addr() == addr })
}

// BindTable moves an interface to another table. VPP refuses while it has addresses of that family.
func (m *Network) BindTable(i *Interface, fam int, tableID uint32) int32 {
	index, ok := m.FIBIndex(fam, tableID)
	if !ok {
		return RetNoSuchFIB
	}
	for _, p := range i.Addrs {
		if Family(p.Addr()) == fam {
			return RetAddressFoundForInterface
		}
	}
	if fam == 0 {
		for _, w := range m.watchers {
			w.TableBound(i.Index, index, i.FIB[0])
		}
	}
	i.FIB[fam] = index
	return RetOK
}

// NameVector lists the names of the interfaces by index; "" = free.
func (m *Network) NameVector() []string {
	var names []string
	for _, i := range m.Interfaces.All {
		for uint32(len(names)) <= i.Index {
			names = append(names, "")
		}
		names[i.Index] = i.Name
	}
	return names
}
