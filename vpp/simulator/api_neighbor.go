package simulator

import (
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
)

// registerNeighbor registers the messages of the ip_neighbor API.
func registerNeighbor(r registry) {
	write(r, ipNeighborAddDel)
	read(r, ipNeighborDump)
}

func ipNeighborAddDel(c *call, req *ip_neighbor.IPNeighborAddDel) {
	reply := &ip_neighbor.IPNeighborAddDelReply{StatsIndex: none}
	key := neighborKey{swIf: uint32(req.Neighbor.SwIfIndex), addr: fromAddress(req.Neighbor.IPAddress)}
	switch {
	case c.iface(key.swIf) == nil:
		reply.Retval = retInvalidSwIfIndex
	case req.IsAdd:
		flags := req.Neighbor.Flags
		reply.StatsIndex, reply.Retval = c.addNeighbor(key, req.Neighbor.MacAddress,
			flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC != 0,
			flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY != 0)
	default:
		reply.Retval = c.delNeighbor(key)
	}
	c.reply(reply)
}

func ipNeighborDump(c *call, req *ip_neighbor.IPNeighborDump) {
	for _, key := range c.sortedNeighbors(familyBit(req.Af == ip_types.ADDRESS_IP6), uint32(req.SwIfIndex)) {
		n := c.neighbors[key]
		var flags ip_neighbor.IPNeighborFlags
		if n.static {
			flags |= ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC
		}
		if n.noFIB {
			flags |= ip_neighbor.IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY
		}
		c.reply(&ip_neighbor.IPNeighborDetails{
			Age: c.now() - n.since,
			Neighbor: ip_neighbor.IPNeighbor{
				SwIfIndex:  interface_types.InterfaceIndex(key.swIf),
				Flags:      flags,
				MacAddress: n.mac,
				IPAddress:  toAddress(key.addr),
			},
		})
	}
}
