package nat44

import (
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/codec"

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
		{Op{Verb: Withdraw, Addr: row.Addr, Source: 24}, []api.Message{&ip.IPRouteAddDelV2{Route: ip.IPRouteV2{
			Src: 24, Prefix: ip_types.Prefix{Len: 32, Address: ip_types.Address{Un: ip_types.AddressUnion{XXX_UnionData: [16]byte{10, 96, 0, 1}}}},
		}}}},
		{Op{Verb: Withdraw, Addr: row.Addr}, nil}, // source 0 would mean the routes of an operator
		{Op{}, nil},
	} {
		check(t, c.op.Verb.String(), c.want, Messages(c.op))
	}
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

// TestDeletionsAreLarge: VPP reads 4,096 bytes of a client at a time and pauses only when it has
// carried out all of them. Deletions in so many bytes make it walk through its sessions about 300
// times at most, however many entries the rows have.
func TestDeletionsAreLarge(t *testing.T) {
	const header = 16 // of each message
	for _, backends := range []int{1, 2, 36, 127, 253} {
		row := newRow("10.96.0.1:80/TCP")
		row.Locals = many(backends)
		data, err := codec.EncodeMsg(rowMessage(Op{Verb: DelRow, Key: row.Key, Row: &row}), 1)
		if err != nil {
			t.Fatal(err)
		}
		if walks := len(row.Entries()) * 4096 / (len(data) + header); walks > 4096/11 {
			t.Errorf("%d backends: %d walks in 4,096 bytes", backends, walks)
		}
	}
}
