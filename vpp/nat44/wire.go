package nat44

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// anyVRF is the VRF of pool addresses that serve clients of every VRF.
const anyVRF = ^uint32(0)

// Messages returns the binary API messages of an operation, in the order in which they have to be
// sent. Most operations are one message. VPP takes roles, entries of slots, and the entries of a
// large row that is deleted, one at a time. A withdrawal without a source has no message.
func Messages(op Op) []api.Message {
	if op.change != nil {
		return op.change.messages(op.Key)
	}
	switch op.Verb {
	case Enable:
		return []api.Message{&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: op.Sessions}}
	case OneWorker:
		return []api.Message{&nat44_ed.NatSetWorkers{WorkerMask: 1}}
	case Forwarding:
		return []api.Message{&nat44_ed.Nat44ForwardingEnableDisable{Enable: true}}
	case SetTimeouts:
		return []api.Message{&nat44_ed.NatSetTimeouts{
			UDP: op.Timeouts.UDP, TCPEstablished: op.Timeouts.TCPEstablished,
			TCPTransitory: op.Timeouts.TCPTransitory, ICMP: op.Timeouts.ICMP,
		}}
	case AddAddress, DelAddress:
		addr := ip4(op.Addr)
		return []api.Message{&nat44_ed.Nat44AddDelAddressRange{
			FirstIPAddress: addr, LastIPAddress: addr, VrfID: anyVRF, IsAdd: op.Verb == AddAddress, Flags: nat_types.NAT_IS_TWICE_NAT,
		}}
	case AddRoles:
		return roleMessages(op, Outside, Inside)
	case DelRoles:
		return roleMessages(op, Inside, Outside)
	case AddPool, DelPool:
		addr := ip4(op.Addr)
		return []api.Message{&nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: addr, LastIPAddress: addr, VrfID: anyVRF, IsAdd: op.Verb == AddPool}}
	case AddOutput, DelOutput:
		return []api.Message{&nat44_ed.Nat44EdAddDelOutputInterface{
			IsAdd: op.Verb == AddOutput, SwIfIndex: interface_types.InterfaceIndex(op.Interface),
		}}
	case AddRow:
		return []api.Message{rowMessage(op)}
	case DelRow:
		return deletion(op)
	case AddLocal, DelLocal:
		return []api.Message{localMessage(op.Key, op.Local, op.Verb == AddLocal)}
	default:
		return nil
	}
}

// roleMessages returns one message per role, in the given order: an interface is never left with
// the inside role alone.
func roleMessages(op Op, order ...Roles) []api.Message {
	var msgs []api.Message
	for _, role := range order {
		if op.Roles&role != 0 {
			msgs = append(msgs, &nat44_ed.Nat44InterfaceAddDelFeature{
				IsAdd: op.Verb == AddRoles, Flags: nat_types.NatConfigFlags(role), SwIfIndex: interface_types.InterfaceIndex(op.Interface),
			})
		}
	}
	return msgs
}

// wholeRow is the largest number of entries of a row that is deleted by one message: VPP walks
// through all sessions once for each entry, about 25 ms for a million, and pauses only between
// messages (link.Config.Window).
const wholeRow = 16

// deletion returns the messages that delete a row. Entries of a large row are deleted one by one
// before it, except where the rest would have a weight of 0 (modulo 256) in sum. While endpoints
// drain, weights wrap around: a row that lacks entries may then pick a pad. The deletion of the pad
// ends that connection, as the deletion of the row would.
func deletion(op Op) []api.Message {
	if op.Row.Kind != Balanced {
		return []api.Message{rowMessage(op)}
	}
	entries := slices.Clone(op.Row.Entries())
	sum := uint8(0)
	for _, e := range entries {
		sum += e.Weight
	}
	var msgs []api.Message
	for i := len(entries) - 1; i >= 0 && len(entries) > wholeRow; i-- {
		if e := entries[i]; sum != e.Weight {
			msgs = append(msgs, localMessage(op.Key, e, false))
			sum, entries = sum-e.Weight, slices.Delete(entries, i, i+1)
		}
	}
	msg := mappingMessage(op)
	for _, local := range entries {
		msg.Locals = append(msg.Locals, wireLocal(local))
	}
	msg.LocalNum = uint32(len(msg.Locals))
	return append(msgs, msg)
}

// rowMessage returns the message that adds a row, or deletes one that balances nothing.
func rowMessage(op Op) api.Message {
	switch op.Row.Kind {
	case Static:
		return staticMessage(op)
	case Identity:
		return identityMessage(op)
	}
	msg := mappingMessage(op)
	msg.IsAdd, msg.Affinity, msg.Tag = true, op.Row.Affinity, op.Row.Tag
	if op.Row.Remembered > 0 {
		msg.Affinity = op.Row.Remembered
	}
	entries := op.Row.Entries()
	msg.LocalNum = uint32(len(entries))
	msg.Locals = make([]nat44_ed.Nat44LbAddrPort, len(entries))
	for i, local := range entries {
		msg.Locals[i] = wireLocal(local)
	}
	return msg
}

// mappingMessage returns what the messages that add and delete a row have in common. A deletion
// needs the flags too: without OUT2IN_ONLY VPP looks for keys that were never added.
func mappingMessage(op Op) *nat44_ed.Nat44AddDelLbStaticMapping {
	return &nat44_ed.Nat44AddDelLbStaticMapping{
		Flags: nat_types.NatConfigFlags(op.Row.Flags), ExternalAddr: ip4(op.Key.Addr), ExternalPort: op.Key.Port, Protocol: op.Key.Proto,
	}
}

// localMessage returns the message that adds an entry to a row or deletes it.
func localMessage(key rule.Key, l Local, add bool) api.Message {
	return &nat44_ed.Nat44LbStaticMappingAddDelLocal{
		IsAdd: add, ExternalAddr: ip4(key.Addr), ExternalPort: key.Port, Protocol: key.Proto, Local: wireLocal(l),
	}
}

// noInterface is ~0, "no interface".
const noInterface = interface_types.InterfaceIndex(^uint32(0))

// staticMessage returns the message that adds or deletes the simple mapping of an address. A
// mapping must be deleted with the message of its own kind: with another one VPP returns 0 and
// deletes nothing.
func staticMessage(op Op) api.Message {
	msg := &nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: op.Verb == AddRow, Flags: nat_types.NAT_IS_ADDR_ONLY, LocalIPAddress: ip4(op.Row.Locals[0].Addr), ExternalIPAddress: ip4(op.Key.Addr),
		ExternalSwIfIndex: noInterface,
	}
	if msg.IsAdd {
		msg.Tag = op.Row.Tag
	}
	return msg
}

// identityMessage returns the message that adds or deletes an identity mapping.
func identityMessage(op Op) api.Message {
	msg := &nat44_ed.Nat44AddDelIdentityMapping{
		IsAdd: op.Verb == AddRow, IPAddress: ip4(op.Key.Addr), Port: op.Key.Port, Protocol: op.Key.Proto, SwIfIndex: noInterface,
	}
	if op.Key.Port == 0 {
		msg.Flags, msg.Protocol = nat_types.NAT_IS_ADDR_ONLY, 0
	}
	if msg.IsAdd {
		msg.Tag = op.Row.Tag
	}
	return msg
}

// wireLocal translates a local.
func wireLocal(l Local) nat44_ed.Nat44LbAddrPort {
	return nat44_ed.Nat44LbAddrPort{Addr: ip4(l.Addr), Port: l.Port, Probability: l.Weight, VrfID: l.Table}
}

// ip4 translates an IPv4 address; for anything else it returns 0.0.0.0, which VPP never matches.
func ip4(addr netip.Addr) ip_types.IP4Address {
	if !addr.Is4() {
		return ip_types.IP4Address{}
	}
	return addr.As4()
}
