package toytest

import (
	"context"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Index is the index of an interface, MAC the address of a neighbour.
type (
	Index = interface_types.InterfaceIndex
	MAC   = ethernet_types.MacAddress
)

// Marker is the address of the neighbour that is a setting, MarkerMAC its MAC address.
var Marker, MarkerMAC = netip.MustParseAddr("192.168.16.250"), MAC{2, 't', 'o', 'y', 255, 255}

// Ours reports whether a MAC address belongs to a neighbour of ours.
func Ours(m MAC) bool { return m[1] == 't' && m[2] == 'o' && m[3] == 'y' }

// Read returns all neighbours on the uplink.
func Read(ctx context.Context, vpp link.Caller) (map[netip.Addr]MAC, error) {
	found := map[netip.Addr]MAC{}
	err := vpp.Dump(ctx, &ip_neighbor.IPNeighborDump{SwIfIndex: ^Index(0)}, func(m api.Message) {
		if d, is := m.(*ip_neighbor.IPNeighborDetails); is && d.Neighbor.SwIfIndex != 0 {
			// local0 leads nowhere
			found[netip.AddrFrom4(d.Neighbor.IPAddress.Un.GetIP4())] = d.Neighbor.MacAddress
		}
	})
	return found, err
}

// Op sets one neighbour on the uplink, or deletes it.
type Op struct {
	Uplink Index
	Addr   netip.Addr
	MAC    MAC
	Add    bool
}

// Describe is the operation in one line.
func (op Op) Describe() string { return fmt.Sprintf("neighbour %s %t", op.Addr, op.Add) }

// Request is the operation for VPP.
func (op Op) Request() *ip_neighbor.IPNeighborAddDel {
	n := ip_neighbor.IPNeighbor{SwIfIndex: op.Uplink, Flags: ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, MacAddress: op.MAC}
	n.IPAddress.Un.SetIP4(ip_types.IP4Address(op.Addr.As4()))
	return &ip_neighbor.IPNeighborAddDel{IsAdd: op.Add, Neighbor: n}
}

// Apply carries out operations, and returns a result for each.
func Apply(ctx context.Context, vpp link.Caller, ops []Op) []batch.Result[Op] {
	results := make([]batch.Result[Op], len(ops))
	for i, op := range ops {
		results[i].Op = op
	}
	batch.Send(ctx, vpp, results, func(i int) []api.Message { return []api.Message{ops[i].Request()} }, func(r *batch.Result[Op], answer link.Result) {
		r.Add(answer.Err, func(int32) (error, bool) { return batch.ErrRejected, false })
	})
	return results
}
