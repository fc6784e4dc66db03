package nat44

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Read reads the state of the plugin from VPP. While the plugin is not enabled it requests only the
// running configuration and the workers. An error wraps what the link reports; errors.Is(err,
// link.ErrUnsupported) means that the plugin is not loaded. The dumps are separate requests: a
// change that another client of VPP makes between them may be seen in part.
func Read(ctx context.Context, c link.Caller) (*State, error) {
	state := NewState()
	if err := readConfig(ctx, c, state); err != nil {
		return state, err
	}
	if err := c.Dump(ctx, &nat44_ed.NatWorkerDump{}, func(api.Message) { state.Workers++ }); err != nil {
		return nil, fmt.Errorf("read NAT workers: %w", err)
	}
	if !state.Enabled {
		return state, nil
	}
	if err := readReceived(ctx, c, state); err != nil {
		return nil, err
	}
	// Roles come before rows, so that an interface with the inside role alone is known before a
	// row with affinity.
	for _, read := range []func(context.Context, link.Caller, *State) error{
		dump("interfaces", &nat44_ed.Nat44InterfaceDump{}, func(s *State, d *nat44_ed.Nat44InterfaceDetails) {
			s.Roles[uint32(d.SwIfIndex)] = Roles(d.Flags) & Both
		}),
		dump("output interfaces", &nat44_ed.Nat44EdOutputInterfaceGet{}, func(s *State, d *nat44_ed.Nat44EdOutputInterfaceDetails) { s.Output[uint32(d.SwIfIndex)] = true }),
		dump("addresses", &nat44_ed.Nat44AddressDump{}, addAddress),
		dump("static mappings", &nat44_ed.Nat44StaticMappingDump{}, addStatic),
		dump("identity mappings", &nat44_ed.Nat44IdentityMappingDump{}, addIdentity),
		dump("load-balancing mappings", &nat44_ed.Nat44LbStaticMappingDump{}, addRow),
	} {
		if err := read(ctx, c, state); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// readConfig reads the settings of the plugin; 0 sessions is VPP's answer when it is not enabled.
func readConfig(ctx context.Context, c link.Caller, state *State) error {
	reply, err := link.Ask[*nat44_ed.Nat44ShowRunningConfigReply](ctx, c, &nat44_ed.Nat44ShowRunningConfig{})
	if err != nil {
		return fmt.Errorf("read running configuration of NAT44: %w", err)
	}
	if reply.Sessions == 0 {
		return nil
	}
	state.Enabled, state.Sessions, state.Forwarding = true, reply.Sessions, reply.ForwardingEnabled
	state.Timeouts = Timeouts{
		UDP: reply.Timeouts.UDP, TCPEstablished: reply.Timeouts.TCPEstablished,
		TCPTransitory: reply.Timeouts.TCPTransitory, ICMP: reply.Timeouts.ICMP,
	}
	return nil
}

// dump returns a function that enters what VPP answers to one request.
func dump[D api.Message](what string, request api.Message, enter func(*State, D)) func(context.Context, link.Caller, *State) error {
	return func(ctx context.Context, c link.Caller, state *State) error {
		if err := link.Each(ctx, c, request, func(d D) { enter(state, d) }); err != nil {
			return fmt.Errorf("read NAT44 %s: %w", what, err)
		}
		return nil
	}
}

func addAddress(state *State, d *nat44_ed.Nat44AddressDetails) {
	if addr := netip.AddrFrom4(d.IPAddress); d.Flags&nat_types.NAT_IS_TWICE_NAT != 0 {
		state.TwiceNAT = append(state.TwiceNAT, addr)
	} else {
		state.Pool = append(state.Pool, addr)
	}
}

// addStatic enters a simple mapping: as a row if it has our tag, otherwise as an occupied key.
// Mappings of a whole address, whose key has neither port nor protocol, rank below rows in VPP, and
// an address of 0.0.0.0 is the template of a mapping that is bound to an interface.
func addStatic(state *State, d *nat44_ed.Nat44StaticMappingDetails) {
	if whole := d.Flags&nat_types.NAT_IS_ADDR_ONLY != 0; whole {
		d.ExternalPort, d.LocalPort, d.Protocol = 0, 0, 0
	}
	if !Ours(d.Tag) {
		state.occupy(d.ExternalIPAddress, d.ExternalPort, d.Protocol, "static mapping", d.Tag)
		return
	}
	state.keep(Row{
		Key: rule.Key{Addr: netip.AddrFrom4(d.ExternalIPAddress), Port: d.ExternalPort, Proto: d.Protocol}, Kind: Static, Tag: d.Tag,
		Locals: []Local{{Addr: netip.AddrFrom4(d.LocalIPAddress), Port: d.LocalPort, Weight: 1}},
		odd:    d.Flags != nat_types.NAT_IS_ADDR_ONLY || d.VrfID != 0,
	})
}

func addIdentity(state *State, d *nat44_ed.Nat44IdentityMappingDetails) {
	if whole := d.Flags&nat_types.NAT_IS_ADDR_ONLY != 0; whole {
		d.Port, d.Protocol = 0, 0
	}
	if !Ours(d.Tag) {
		state.occupy(d.IPAddress, d.Port, d.Protocol, "identity mapping", d.Tag)
		return
	}
	at := netip.AddrFrom4(d.IPAddress)
	state.keep(Row{
		Key: rule.Key{Addr: at, Port: d.Port, Proto: d.Protocol}, Kind: Identity, Tag: d.Tag, Locals: []Local{{Addr: at, Port: d.Port, Weight: 1}},
		odd: d.VrfID != 0,
	})
}

// keep enters a mapping with our tag. One without an address is the template of a mapping bound to
// an interface, which Troupe never creates.
func (s *State) keep(row Row) {
	if row.Addr != netip.AddrFrom4([4]byte{}) {
		s.Rows[row.Key] = row
	}
}

func addRow(state *State, d *nat44_ed.Nat44LbStaticMappingDetails) {
	if !Ours(d.Tag) {
		state.occupy(d.ExternalAddr, d.ExternalPort, d.Protocol, "load-balancing mapping", d.Tag)
		return
	}
	row := rowOf(d)
	state.Rows[row.Key] = row
}

// occupy enters a key that a mapping without our tag holds.
func (s *State) occupy(addr [4]byte, port uint16, proto uint8, kind, tag string) {
	if addr == [4]byte{} {
		return
	}
	if tag != "" {
		kind = fmt.Sprintf("%s %q", kind, tag)
	}
	s.Foreign[rule.Key{Addr: netip.AddrFrom4(addr), Port: port, Proto: proto}] = kind
}

// rowOf translates a row with our tag. A property that no planned row has makes it odd, so that
// Diff replaces the row.
func rowOf(d *nat44_ed.Nat44LbStaticMappingDetails) Row {
	tag, known := ParseTag(d.Tag)
	row := Row{
		Key:   rule.Key{Addr: netip.AddrFrom4(d.ExternalAddr), Port: d.ExternalPort, Proto: d.Protocol},
		Flags: Flags(d.Flags) & knownFlags, Affinity: tag.Affinity, Tag: d.Tag,
		odd: !known || Flags(d.Flags)&^knownFlags != 0,
	}
	all := make([]Local, len(d.Locals))
	for i, l := range d.Locals {
		all[i] = Local{Addr: netip.AddrFrom4(l.Addr), Port: l.Port, Table: l.VrfID, Weight: l.Probability}
		row.odd = row.odd || l.VrfID != 0 && reserved(all[i].Endpoint())
	}
	if slots, astray, whole, ok := parseSlots(all); ok {
		row.Pads = true
		row.place(slots)
		row.torn, row.astray = !whole, astray
		row.odd = row.odd || hasDuplicates(row.Locals) || hasDuplicates(row.Draining)
		return row
	}
	row.Locals = all
	slices.SortFunc(all, compareEntry)
	if len(all) == 2 && all[0] == all[1] {
		row.Locals = all[:1]
	}
	row.odd = row.odd || hasDuplicates(row.Locals) || slices.ContainsFunc(all, func(l Local) bool { return reserved(l.Endpoint()) })
	return row
}

// hasDuplicates reports whether two neighbours are the same entry.
func hasDuplicates(locals []Local) bool {
	for i := 1; i < len(locals); i++ {
		if compareEntry(locals[i-1], locals[i]) == 0 {
			return true
		}
	}
	return false
}
