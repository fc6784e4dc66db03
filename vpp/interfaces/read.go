package interfaces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/arp"
	interfaceapi "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// anyIndex is the interface index that means "every interface" or "none"; 0 is an interface.
const anyIndex = ^interface_types.InterfaceIndex(0)

// readList reads what VPP returns for all interfaces in one dump, which is everything except their
// addresses.
func readList(ctx context.Context, c link.Caller) (Raw, error) {
	raw := Raw{}
	if err := readInterfaces(ctx, c, &raw); err != nil {
		return Raw{}, err
	}
	if err := readLenders(ctx, c, &raw); err != nil {
		return Raw{}, err
	}
	if err := readBridges(ctx, c, &raw); err != nil {
		return Raw{}, err
	}
	if err := readTables(ctx, c, &raw); err != nil {
		return Raw{}, err
	}
	return raw, nil
}

// addressable returns the interfaces that can have addresses, which are all except local0.
func addressable(interfaces []RawInterface) []*RawInterface {
	var some []*RawInterface
	for k := range interfaces {
		if !isLocal0(&interfaces[k]) {
			some = append(some, &interfaces[k])
		}
	}
	return some
}

// readInterfaces lists the interfaces.
func readInterfaces(ctx context.Context, c link.Caller, raw *Raw) error {
	return link.Each(ctx, c, &interfaceapi.SwInterfaceDump{SwIfIndex: anyIndex}, func(m *interfaceapi.SwInterfaceDetails) {
		raw.Interfaces = append(raw.Interfaces, RawInterface{
			Index:   uint32(m.SwIfIndex),
			Name:    m.InterfaceName,
			Device:  m.InterfaceDevType,
			AdminUp: m.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0,
			LinkUp:  m.Flags&interface_types.IF_STATUS_API_FLAG_LINK_UP != 0,
			BVI:     m.InterfaceDevType == "BVI",
		})
	})
}

// readLenders reads which interfaces use the addresses of another one (unnumbered).
func readLenders(ctx context.Context, c link.Caller, raw *Raw) error {
	lenders := map[uint32]uint32{}
	err := optional(link.Each(ctx, c, &ip.IPUnnumberedDump{SwIfIndex: anyIndex}, func(m *ip.IPUnnumberedDetails) {
		lenders[uint32(m.SwIfIndex)] = uint32(m.IPSwIfIndex)
	}))
	for k := range raw.Interfaces {
		i := &raw.Interfaces[k]
		i.Lender, i.Unnumbered = lenders[i.Index]
	}
	return err
}

// readBridges reads the virtual interfaces of bridge domains: such a loopback leads to the members
// of its domain.
func readBridges(ctx context.Context, c link.Caller, raw *Raw) error {
	virtual := map[uint32]bool{}
	shared := false
	err := optional(link.Each(ctx, c, &l2.BridgeDomainDump{BdID: ^uint32(0), SwIfIndex: anyIndex}, func(m *l2.BridgeDomainDetails) {
		if m.BviSwIfIndex == anyIndex {
			return
		}
		b := Bridge{ID: m.BdID, Virtual: uint32(m.BviSwIfIndex)}
		for _, d := range m.SwIfDetails {
			if d.SwIfIndex != m.BviSwIfIndex {
				b.Members = append(b.Members, Member{Index: uint32(d.SwIfIndex), Group: d.Shg})
			}
		}
		raw.Bridges = append(raw.Bridges, b)
		virtual[b.Virtual], shared = true, shared || len(b.Members) > 1
	}))
	sortBridges(raw.Bridges)
	for k := range raw.Interfaces {
		i := &raw.Interfaces[k]
		i.BVI = i.BVI || virtual[i.Index]
	}
	if err != nil || !shared {
		return err
	}
	return readProxyARP(ctx, c, raw)
}

// readProxyARP reads for which addresses VPP answers ARP in the place of hosts.
func readProxyARP(ctx context.Context, c link.Caller, raw *Raw) error {
	err := optional(link.Each(ctx, c, &arp.ProxyArpDump{}, func(m *arp.ProxyArpDetails) {
		raw.ProxyARP = append(raw.ProxyARP, Range{netip.AddrFrom4(m.Proxy.Low), netip.AddrFrom4(m.Proxy.Hi)})
	}))
	slices.SortFunc(raw.ProxyARP, func(a, b Range) int { return cmp.Or(a.Low.Compare(b.Low), a.High.Compare(b.High)) })
	answers := map[uint32]bool{}
	err = errors.Join(err, optional(link.Each(ctx, c, &arp.ProxyArpIntfcDump{}, func(m *arp.ProxyArpIntfcDetails) { answers[m.SwIfIndex] = true })))
	for k := range raw.Interfaces {
		raw.Interfaces[k].ProxyARP = answers[raw.Interfaces[k].Index]
	}
	return err
}

// readTables lists the tables.
func readTables(ctx context.Context, c link.Caller, raw *Raw) error {
	err := optional(link.Each(ctx, c, &ip.IPTableDump{}, func(d *ip.IPTableDetails) {
		switch m := d.Table; {
		case m.TableID == 0:
		case m.IsIP6:
			raw.tables6 = append(raw.tables6, m.TableID)
		default:
			raw.Tables = append(raw.Tables, m.TableID)
		}
	}))
	slices.Sort(raw.Tables)
	slices.Sort(raw.tables6)
	return err
}

// optional drops the error of a VPP without the message, whose plugin or version has no such
// objects.
func optional(err error) error {
	if errors.Is(err, link.ErrUnsupported) {
		return nil
	}
	return err
}

// readers is the number of address dumps in flight: VPP has no dump of all addresses, and
// sequential round trips take long on a node with hundreds of pods.
const readers = 16

// readEach reads what VPP tells of one interface at a time: addresses, and the table where there
// are several.
func readEach(ctx context.Context, c link.Caller, raw *Raw, interfaces []*RawInterface) error {
	if err := readAddresses(ctx, c, interfaces); err != nil || len(raw.Tables) == 0 {
		return err
	}
	reqs := make([]api.Message, len(interfaces))
	for k, i := range interfaces {
		reqs[k] = &interfaceapi.SwInterfaceGetTable{SwIfIndex: interface_types.InterfaceIndex(i.Index)}
	}
	results, err := c.Do(ctx, reqs)
	if err != nil {
		return fmt.Errorf("tables of interfaces: %w", err)
	}
	for k, r := range results {
		if reply, ok := r.Reply.(*interfaceapi.SwInterfaceGetTableReply); ok && r.Err == nil {
			interfaces[k].Table = reply.VrfID
		} else if _, replied := link.Retval(r.Err); !replied { // an interface may have gone meanwhile
			return fmt.Errorf("table of interface %s: %w", interfaces[k].Name, r.Err)
		}
	}
	return nil
}

// readAddresses reads the addresses of interfaces, IPv4 and then IPv6.
func readAddresses(ctx context.Context, c link.Caller, interfaces []*RawInterface) error {
	if _, serial := c.(link.Serial); serial {
		return readAddressesInTurn(ctx, c, interfaces)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, readers)
	var group sync.WaitGroup
	for _, i := range interfaces {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := addressesOf(ctx, c, i); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// readAddressesInTurn is readAddresses on the goroutine of the caller.
func readAddressesInTurn(ctx context.Context, c link.Caller, interfaces []*RawInterface) error {
	for _, i := range interfaces {
		if err := addressesOf(ctx, c, i); err != nil {
			return err
		}
	}
	return nil
}

// addressesOf reads the addresses of one interface.
func addressesOf(ctx context.Context, c link.Caller, i *RawInterface) error {
	for _, v6 := range []bool{false, true} {
		req := &ip.IPAddressDump{SwIfIndex: interface_types.InterfaceIndex(i.Index), IsIPv6: v6}
		err := link.Each(ctx, c, req, func(m *ip.IPAddressDetails) {
			i.Addresses = append(i.Addresses, netip.PrefixFrom(forwarding.FromAddress(m.Prefix.Address), int(m.Prefix.Len)))
		})
		if err != nil {
			return fmt.Errorf("addresses of interface %s: %w", i.Name, err)
		}
	}
	return nil
}
