package nat44

import (
	"fmt"
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/link"
)

func TestMessages(t *testing.T) {
	row := withAffinity(newRow("10.96.0.1:80/TCP", "10.1.1.2:8080", "10.1.1.1:8080"), 60)
	vip, pad := [4]byte{10, 96, 0, 1}, [4]byte{192, 0, 2, 1}
	for _, c := range []struct {
		op   Op
		want []api.Message
	}{
		{Op{Verb: Enable, Sessions: 5}, []api.Message{&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: 5}}},
		{Op{Verb: Forwarding}, []api.Message{&nat44_ed.Nat44ForwardingEnableDisable{Enable: true}}},
		{
			Op{Verb: SetTimeouts, Timeouts: Timeouts{UDP: 1, TCPEstablished: 2, TCPTransitory: 3, ICMP: 4}},
			[]api.Message{&nat44_ed.NatSetTimeouts{UDP: 1, TCPEstablished: 2, TCPTransitory: 3, ICMP: 4}},
		},
		{Op{Verb: AddAddress, Addr: loopback}, []api.Message{&nat44_ed.Nat44AddDelAddressRange{
			FirstIPAddress: [4]byte{10, 1, 1, 254}, LastIPAddress: [4]byte{10, 1, 1, 254}, VrfID: 0xffffffff, IsAdd: true, Flags: 1,
		}}},
		{Op{Verb: DelAddress, Addr: loopback}, []api.Message{&nat44_ed.Nat44AddDelAddressRange{
			FirstIPAddress: [4]byte{10, 1, 1, 254}, LastIPAddress: [4]byte{10, 1, 1, 254}, VrfID: 0xffffffff, Flags: 1,
		}}},
		{Op{Verb: AddRoles, Interface: 3, Roles: Both}, []api.Message{
			&nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: true, Flags: 0x10, SwIfIndex: 3},
			&nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: true, Flags: 0x20, SwIfIndex: 3},
		}},
		{Op{Verb: DelRoles, Interface: 3, Roles: Both}, []api.Message{
			&nat44_ed.Nat44InterfaceAddDelFeature{Flags: 0x20, SwIfIndex: 3},
			&nat44_ed.Nat44InterfaceAddDelFeature{Flags: 0x10, SwIfIndex: 3},
		}},
		{Op{Verb: AddRow, Key: row.Key, Row: &row}, []api.Message{&nat44_ed.Nat44AddDelLbStaticMapping{
			IsAdd: true, Flags: 6, ExternalAddr: vip, ExternalPort: 80, Protocol: 6, Affinity: 60, Tag: row.Tag, LocalNum: 4,
			Locals: []nat44_ed.Nat44LbAddrPort{
				{Addr: [4]byte{10, 1, 1, 1}, Port: 8080, Probability: 7},
				{Addr: pad, Port: 2},
				{Addr: [4]byte{10, 1, 1, 2}, Port: 8080, Probability: 7},
				{Addr: [4]byte{192, 0, 2, 2}, Port: 2},
			},
		}}},
		{Op{Verb: DelRow, Key: row.Key, Row: &row}, []api.Message{&nat44_ed.Nat44AddDelLbStaticMapping{
			Flags: 6, ExternalAddr: vip, ExternalPort: 80, Protocol: 6, LocalNum: 4,
			Locals: []nat44_ed.Nat44LbAddrPort{
				{Addr: [4]byte{10, 1, 1, 1}, Port: 8080, Probability: 7},
				{Addr: pad, Port: 2},
				{Addr: [4]byte{10, 1, 1, 2}, Port: 8080, Probability: 7},
				{Addr: [4]byte{192, 0, 2, 2}, Port: 2},
			},
		}}},
		{Op{Verb: AddLocal, Key: row.Key, Local: row.Locals[0]}, []api.Message{&nat44_ed.Nat44LbStaticMappingAddDelLocal{
			IsAdd: true, ExternalAddr: vip, ExternalPort: 80, Protocol: 6,
			Local: nat44_ed.Nat44LbAddrPort{Addr: [4]byte{10, 1, 1, 1}, Port: 8080, Probability: 7},
		}}},
		{Op{Verb: DelLocal, Key: row.Key, Local: row.Locals[0]}, []api.Message{&nat44_ed.Nat44LbStaticMappingAddDelLocal{
			ExternalAddr: vip, ExternalPort: 80, Protocol: 6,
			Local: nat44_ed.Nat44LbAddrPort{Addr: [4]byte{10, 1, 1, 1}, Port: 8080, Probability: 7},
		}}},
		{Op{}, nil},
	} {
		check(t, c.op.Verb.String(), c.want, Messages(c.op))
	}
	withdrawal := func(table uint32) api.Message {
		return &ip.IPRouteAddDelV2{Route: ip.IPRouteV2{
			TableID: table, Src: 24, Prefix: ip_types.Prefix{Len: 32, Address: ip_types.Address{Un: ip_types.AddressUnion{XXX_UnionData: [16]byte{10, 96, 0, 1}}}},
		}}
	}
	check(t, "withdrawal", []api.Message{withdrawal(0), withdrawal(7)}, left{nat: 24, tables: []uint32{0, 7}}.withdrawal(row.Addr))
	check(t, "withdrawal without a source, which would be the routes of an operator", nil, left{tables: []uint32{0}}.withdrawal(row.Addr))
}

// TestMessagesPassTheGuard: the link lets every message of ours through.
func TestMessagesPassTheGuard(t *testing.T) {
	for _, op := range everyOp() {
		for _, msg := range Messages(op) {
			if err := link.Check(msg); err != nil {
				t.Errorf("%s: %v", op, err)
			}
		}
	}
}

// TestDeletionsPause: no message makes VPP walk through its sessions more than 16 times, however
// many entries a row has. The weights of a row never come to 0.
func TestDeletionsPause(t *testing.T) {
	for _, tt := range []struct {
		backends, draining, messages int
	}{
		{1, 0, 1},
		{2, 0, 1},
		{8, 0, 1},
		{9, 0, 17},
		{16, 0, 17},
		{36, 0, 113},
		{127, 0, 240},
		{17, 5, 49},
		{100, 20, 240},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			row := newRow("10.96.0.1:80/TCP")
			row.Locals = many(tt.backends + tt.draining)
			slots := row.layout()
			for i := range tt.draining {
				slots[i].share = 0
			}
			row.place(slots)
			weights := map[netip.AddrPort]uint8{}
			sum := uint8(0)
			for _, e := range row.Entries() {
				weights[e.Endpoint()], sum = e.Weight, sum+e.Weight
			}
			msgs := Messages(Op{Verb: DelRow, Key: row.Key, Row: &row})
			if len(msgs) != tt.messages {
				t.Errorf("%d messages, want %d", len(msgs), tt.messages)
			}
			for _, msg := range msgs {
				walks := len(weights)
				if m, one := msg.(*nat44_ed.Nat44LbStaticMappingAddDelLocal); one {
					at := netip.AddrPortFrom(netip.AddrFrom4(m.Local.Addr), m.Local.Port)
					walks, sum = 1, sum-weights[at]
					delete(weights, at)
				} else if listed := len(msg.(*nat44_ed.Nat44AddDelLbStaticMapping).Locals); listed != walks {
					t.Errorf("the deletion lists %d of %d entries: the link counts those", listed, walks)
				}
				if walks > 16 {
					t.Errorf("%d walks without a pause", walks)
				}
				if sum == 0 {
					t.Errorf("weights of 0 in sum, %d entries left", len(weights))
				}
			}
		})
	}
}
