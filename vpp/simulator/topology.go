package simulator

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator/model"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Kinds of interfaces. One without a kind is a veth or NIC attached with af_packet.
const (
	KindTap      = vnet.DevTap
	KindLoopback = vnet.DevLoopback
)

// InterfaceSpec describes an interface to create.
type InterfaceSpec struct {
	// Name is the VPP interface name, for example "host-eth0".
	Name string
	// Kind is one of the kinds.
	Kind string
	// Addresses are interface addresses with prefix length.
	Addresses []netip.Prefix
	// Up sets the interface admin-up.
	Up bool
	// TableID is the VRF of the interface; it is created if it does not exist.
	TableID uint32
}

// AddInterface creates an interface with addresses and returns its sw_if_index.
func (v *VPP) AddInterface(name string, addrs []netip.Prefix, up bool) (uint32, error) {
	return v.AddInterfaceSpec(InterfaceSpec{Name: name, Addresses: addrs, Up: up})
}

// AddInterfaceSpec creates an interface and returns its sw_if_index.
func (v *VPP) AddInterfaceSpec(spec InterfaceSpec) (uint32, error) {
	index := vnet.None
	err := v.with(func(m *model.Model) error {
		if _, taken := m.ByName[spec.Name]; taken {
			return fmt.Errorf("add interface %s: name is taken", spec.Name)
		}
		i := &vnet.Interface{Name: spec.Name, DevType: cmp.Or(spec.Kind, vnet.DevAfPacket)}
		i.FIB[0], i.FIB[1] = m.FindOrCreateFIB(0, spec.TableID), m.FindOrCreateFIB(1, spec.TableID)
		index = m.AddInterface(i)
		i.MAC = [6]byte{0x02, 0xfe, 0, 0, byte(index >> 8), byte(index)}
		for _, p := range spec.Addresses {
			if retval := m.AddAddress(i, p); retval != vnet.RetOK {
				m.DeleteInterface(i)
				return fmt.Errorf("add interface %s: address %s: retval %d", spec.Name, p, retval)
			}
		}
		m.SetAdmin(i, spec.Up)
		return nil
	})
	if err != nil {
		return vnet.None, err
	}
	return index, nil
}

// DeleteInterface removes an interface of any kind, as a CNI does with the interface of a pod that
// is gone.
func (v *VPP) DeleteInterface(name string) error {
	return v.onInterface(name, func(m *model.Model, i *vnet.Interface) error {
		for _, fam := range m.Tables {
			for _, t := range fam {
				t.DropAttached(i.Index)
			}
		}
		m.DeleteInterface(i)
		return nil
	})
}

// SetInterface changes the admin state of an interface.
func (v *VPP) SetInterface(name string, up bool) error {
	return v.onInterface(name, func(m *model.Model, i *vnet.Interface) error {
		m.SetAdmin(i, up)
		return nil
	})
}

// AddAddress adds an address to an interface.
func (v *VPP) AddAddress(name string, p netip.Prefix) error {
	return v.onInterface(name, func(m *model.Model, i *vnet.Interface) error {
		if retval := m.AddAddress(i, p); retval != vnet.RetOK {
			return fmt.Errorf("add address %s to %s: retval %d", p, name, retval)
		}
		return nil
	})
}

// AddBridge puts interfaces into a bridge domain behind a virtual interface, which has to exist,
// all in the same split-horizon group.
func (v *VPP) AddBridge(id uint32, virtual string, group uint8, members ...string) error {
	return v.onInterface(virtual, func(m *model.Model, i *vnet.Interface) error {
		b := vnet.Bridge{ID: id, Virtual: i.Index}
		for _, name := range members {
			index, found := m.ByName[name]
			if !found {
				return fmt.Errorf("add bridge domain %d: %w: %s", id, vnet.ErrNoInterface, name)
			}
			b.Members = append(b.Members, vnet.BridgeMember{Index: index, Group: group})
		}
		m.Bridges = append(slices.DeleteFunc(slices.Clone(m.Bridges), func(o vnet.Bridge) bool { return o.ID == id }), b)
		return nil
	})
}

// SetProxyARP lets an interface answer ARP for the addresses from low to high. It replaces earlier
// ones.
func (v *VPP) SetProxyARP(name string, low, high netip.Addr) error {
	return v.onInterface(name, func(m *model.Model, i *vnet.Interface) error {
		m.Proxied = vnet.ProxyARP{Low: low, High: high, Interfaces: []uint32{i.Index}}
		return nil
	})
}

// onInterface runs fn on the interface with the given name.
func (v *VPP) onInterface(name string, fn func(*model.Model, *vnet.Interface) error) error {
	return v.with(func(m *model.Model) error {
		index, ok := m.ByName[name]
		if !ok {
			return fmt.Errorf("%s: %w", name, ErrNoInterface)
		}
		return fn(m, m.Interface(index))
	})
}

// RouteAction is what a route of the topology API does.
type RouteAction uint8

// The kinds of routes.
const (
	// RouteForward sends packets to the next hop or the interface.
	RouteForward RouteAction = iota
	// RouteDrop drops packets silently.
	RouteDrop
	// RouteReject answers packets with ICMP destination unreachable.
	RouteReject
)

// Route is a route of the topology API.
type Route struct {
	// Prefix is the destination.
	Prefix netip.Prefix
	// Action is what the route does.
	Action RouteAction
	// Interface is the name of the outgoing interface of a forwarding route; empty means that
	// the next hop is looked up again.
	Interface string
	// NextHop is the neighbour of a forwarding route; invalid means that the destination itself
	// is on the link.
	NextHop netip.Addr
}

// AddRoute installs or replaces a route.
func (v *VPP) AddRoute(r Route) error {
	return v.with(func(m *model.Model) error { return addRoute(m, r) })
}

// addRoute installs a route of the topology API.
func addRoute(m *model.Model, r Route) error {
	fam := vnet.Family(r.Prefix.Addr())
	p := vnet.Path{SwIf: vnet.None, Weight: 1, NextHop: r.NextHop}
	switch r.Action {
	case RouteDrop:
		p.Kind = vnet.Drop
	case RouteReject:
		p.Kind = vnet.Unreach
	default:
		p.Kind = vnet.Recursive
		if r.Interface != "" {
			index, ok := m.ByName[r.Interface]
			if !ok {
				return fmt.Errorf("add route %s: %s: %w", r.Prefix, r.Interface, ErrNoInterface)
			}
			p.SwIf, p.Kind = index, vnet.Attached
			if r.NextHop.IsValid() {
				p.Kind = vnet.NextHop
			}
		} else if !r.NextHop.IsValid() {
			return fmt.Errorf("add route %s: neither interface nor next hop", r.Prefix)
		}
	}
	m.Tables[fam][0].Set(r.Prefix, vnet.SourceAPI, []vnet.Path{p})
	return nil
}

// DelRoute removes a route that AddRoute or the binary API installed.
func (v *VPP) DelRoute(prefix netip.Prefix) error {
	return v.with(func(m *model.Model) error {
		m.Tables[vnet.Family(prefix.Addr())][0].Remove(prefix, vnet.SourceAPI)
		return nil
	})
}

// DefaultRoute sends everything else to a neighbour on the uplink.
func (v *VPP) DefaultRoute(uplink string, nextHop netip.Addr) error {
	prefix := netip.MustParsePrefix("0.0.0.0/0")
	if nextHop.Is6() {
		prefix = netip.MustParsePrefix("::/0")
	}
	return v.AddRoute(Route{Prefix: prefix, Interface: uplink, NextHop: nextHop})
}

// AddPod creates the interface of a pod as a CNI would: a tap without addresses, a host route and a
// static neighbour for the pod's address. It returns the sw_if_index.
func (v *VPP) AddPod(name string, addr netip.Addr) (uint32, error) {
	index, err := v.AddInterfaceSpec(InterfaceSpec{Name: name, Kind: KindTap, Up: true})
	if err != nil {
		return vnet.None, err
	}
	err = v.with(func(m *model.Model) error {
		mac := [6]byte{0x02, 0xfe, 0, 1, byte(index >> 8), byte(index)}
		m.AddNeighbor(vnet.NeighborKey{SwIf: index, Addr: addr}, mac, true, false)
		return addRoute(m, Route{Prefix: netip.PrefixFrom(addr, addr.BitLen()), Interface: name, NextHop: addr})
	})
	if err != nil {
		return vnet.None, fmt.Errorf("add pod %s: %w", name, err)
	}
	return index, nil
}

// AddNeighbor makes an address a resolved neighbour on an interface.
func (v *VPP) AddNeighbor(name string, addr netip.Addr, static bool) error {
	return v.onInterface(name, func(m *model.Model, i *vnet.Interface) error {
		mac := [6]byte{0x02, 0xfe, 0, 2, addr.As16()[14], addr.As16()[15]}
		if _, retval := m.AddNeighbor(vnet.NeighborKey{SwIf: i.Index, Addr: addr}, mac, static, false); retval != vnet.RetOK {
			return fmt.Errorf("add neighbor %s on %s: retval %d", addr, name, retval)
		}
		return nil
	})
}
