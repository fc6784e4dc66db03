package nat44

import (
	"slices"
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
			Flags: 6, ExternalAddr: vip, ExternalPort: 80, Protocol: 6, LocalNum: 48,
			Locals: slices.Repeat([]nat44_ed.Nat44LbAddrPort{
				{Addr: [4]byte{10, 1, 1, 1}, Port: 8080, Probability: 7},
				{Addr: pad, Port: 2},
				{Addr: [4]byte{10, 1, 1, 2}, Port: 8080, Probability: 7},
				{Addr: [4]byte{192, 0, 2, 2}, Port: 2},
			}, 12),
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

// TestDeletionsPause: VPP reads 4,096 bytes of a client at a time and pauses only when it has
// carried out all of them. Deletions make it walk through its sessions about 50 times at most in so
// many bytes, or 16 messages (link.Config.Window), however many entries the rows have. A large row
// keeps entries that VPP can pick after every message.
func TestDeletionsPause(t *testing.T) {
	const header, window = 16, 16
	for _, tt := range []struct{ backends, messages int }{{1, 1}, {2, 1}, {16, 1}, {17, 33}, {36, 97}, {127, 224}} {
		row := newRow("10.96.0.1:80/TCP")
		row.Locals = many(tt.backends)
		entries := row.Entries()
		msgs := Messages(Op{Verb: DelRow, Key: row.Key, Row: &row})
		if len(msgs) != tt.messages {
			t.Errorf("%d backends: %d messages, want %d", tt.backends, len(msgs), tt.messages)
		}
		for _, msg := range msgs {
			walks := 1
			if _, last := msg.(*nat44_ed.Nat44AddDelLbStaticMapping); last {
				walks = len(entries)
			} else {
				entries = entries[:len(entries)-1]
			}
			data, err := codec.EncodeMsg(msg, 1)
			if err != nil {
				t.Fatal(err)
			}
			if walks *= min(4096/(len(data)+header), window); walks > 50 {
				t.Errorf("%d backends: %d walks without a pause", tt.backends, walks)
			}
			sum := 0
			for _, e := range entries {
				sum += int(e.Weight)
			}
			if sum < 1 || sum > MaxWeight {
				t.Errorf("%d backends: weights of %d in sum", tt.backends, sum)
			}
		}
	}
}
