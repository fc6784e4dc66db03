package handlers

import (
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
	"github.com/troupe-vpp/troupe/vpp/simulator/wire"
)

// registerNeighbor registers the messages of the ip_neighbor API.
func registerNeighbor(r Registry) {
	write(r, ipNeighborAddDel)
	Read(r, ipNeighborDump)
}

// ipNeighborAddDel adds or deletes an ARP or ND entry, with its host route unless a flag forbids
// it.
func ipNeighborAddDel(c *Call, req *ip_neighbor.IPNeighborAddDel) {
	reply := &ip_neighbor.IPNeighborAddDelReply{StatsIndex: pool.None}
	key := vnet.NeighborKey{SwIf: uint32(req.Neighbor.SwIfIndex), Addr: wire.FromAddress(req.Neighbor.IPAddress)}
	switch {
	case c.Interface(key.SwIf) == nil:
		reply.Retval = vnet.RetInvalidSwIfIndex
	case req.IsAdd:
		flags := req.Neighbor.Flags
		reply.StatsIndex, reply.Retval = c.AddNeighbor(key, req.Neighbor.MacAddress,
			flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC != 0,
			flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY != 0)
	default:
		reply.Retval = c.DelNeighbor(key)
	}
	c.Reply(reply)
}

// ipNeighborDump lists the entries of one family on one interface, or on all of them for ~0.
func ipNeighborDump(c *Call, req *ip_neighbor.IPNeighborDump) {
	for _, key := range c.SortedNeighbors(wire.FamilyBit(req.Af == ip_types.ADDRESS_IP6), uint32(req.SwIfIndex)) {
		n := c.Neighbors[key]
		var flags ip_neighbor.IPNeighborFlags
		if n.Static {
			flags |= ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC
		}
		if n.NoFIB {
			flags |= ip_neighbor.IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY
		}
		c.Reply(&ip_neighbor.IPNeighborDetails{
			Age: c.Now() - n.Since,
			Neighbor: ip_neighbor.IPNeighbor{
				SwIfIndex:  interface_types.InterfaceIndex(key.SwIf),
				Flags:      flags,
				MacAddress: n.MAC,
				IPAddress:  wire.ToAddress(key.Addr),
			},
		})
	}
}
