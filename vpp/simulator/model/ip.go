package model

import (
	"fmt"
	"net/netip"

	fibapi "go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// registerIP registers the messages of the IP API and of its neighbours.
func registerIP(r Registry) {
	Read(r, ipAddressDump)
	// IPTableDump lists the tables of both families.
	Read(r, func(c *Call, _ *ip.IPTableDump) {
		for fam, tables := range c.Tables {
			for _, t := range tables {
				c.Reply(&ip.IPTableDetails{Table: ip.IPTable{TableID: t.ID, IsIP6: fam == 1, Name: t.Name}})
			}
		}
	})
	// IPRouteLookup finds a route, exactly or by longest match.
	Read(r, func(c *Call, req *ip.IPRouteLookup) {
		route, retval := c.findRoute(req.TableID, req.Prefix, req.Exact != 0)
		c.Reply(&ip.IPRouteLookupReply{Retval: retval, Route: ip.IPRoute{
			TableID: route.TableID, StatsIndex: route.StatsIndex, Prefix: route.Prefix, NPaths: route.NPaths, Paths: route.Paths,
		}})
	})
	// IPRouteLookupV2 is IPRouteLookup with the source of the route in the reply.
	Read(r, func(c *Call, req *ip.IPRouteLookupV2) {
		route, retval := c.findRoute(req.TableID, req.Prefix, req.Exact != 0)
		c.Reply(&ip.IPRouteLookupV2Reply{Retval: retval, Route: route})
	})
	// IPRouteV2Dump lists the routes of one table: of all sources (0), or the routes that one
	// source wins.
	Read(r, func(c *Call, req *ip.IPRouteV2Dump) {
		c.eachRoute(req.Table, vnet.Source(req.Src), func(r ip.IPRouteV2) { c.Reply(&ip.IPRouteV2Details{Route: r}) })
	})
	Read(r, ipUnnumberedDump)
	// IPTableAddDel creates a table; the model deletes none.
	write(r, func(c *Call, req *ip.IPTableAddDel) {
		if !req.IsAdd {
			c.Reply(&ip.IPTableAddDelReply{Retval: vnet.RetUnimplemented})
			return
		}
		fam := FamilyBit(req.Table.IsIP6)
		c.Tables[fam][c.FindOrCreateFIB(fam, req.Table.TableID)].Name = req.Table.Name
		c.Reply(&ip.IPTableAddDelReply{})
	})
	// IPRouteAddDel changes a route of the source API.
	write(r, func(c *Call, req *ip.IPRouteAddDel) {
		stats, retval := c.changeRoute(req.Route, vnet.SourceAPI, req.IsAdd, req.IsMultipath)
		c.Reply(&ip.IPRouteAddDelReply{Retval: retval, StatsIndex: stats})
	})
	// IPRouteAddDelV2 changes a route of any source; 0 is the source API.
	write(r, func(c *Call, req *ip.IPRouteAddDelV2) {
		route := ip.IPRoute{TableID: req.Route.TableID, Prefix: req.Route.Prefix, Paths: req.Route.Paths}
		source := vnet.Source(req.Route.Src)
		if source == 0 {
			source = vnet.SourceAPI
		}
		stats, retval := c.changeRoute(route, source, req.IsAdd, req.IsMultipath)
		c.Reply(&ip.IPRouteAddDelV2Reply{Retval: retval, StatsIndex: stats})
	})
	write(r, ipNeighborAddDel)
	Read(r, ipNeighborDump)
}

// ipAddressDump lists the addresses of one interface and one family. There is no message for the
// addresses of all interfaces, and an unknown interface is an empty list.
func ipAddressDump(c *Call, req *ip.IPAddressDump) {
	i := c.Interface(uint32(req.SwIfIndex))
	if i == nil {
		return
	}
	for _, p := range i.Addrs {
		if p.Addr().Is4() != req.IsIPv6 {
			c.Reply(&ip.IPAddressDetails{SwIfIndex: req.SwIfIndex, Prefix: ip_types.AddressWithPrefix(forwarding.Prefix(p))})
		}
	}
}

// ipUnnumberedDump lists the interfaces that borrow addresses, with their lender.
func ipUnnumberedDump(c *Call, req *ip.IPUnnumberedDump) {
	for _, i := range c.Interfaces.All {
		if i.Borrows != vnet.None && (uint32(req.SwIfIndex) == vnet.None || uint32(req.SwIfIndex) == i.Index) {
			c.Reply(&ip.IPUnnumberedDetails{
				SwIfIndex:   interface_types.InterfaceIndex(i.Index),
				IPSwIfIndex: interface_types.InterfaceIndex(i.Borrows),
			})
		}
	}
}

// changeRoute executes an ip_route_add_del and returns the index of the route's counters. A route
// of a source that does not exist makes VPP read behind the end of its table: it crashes, or adds a
// drop that beats every other source. The simulated one always crashes.
func (c *Call) changeRoute(route ip.IPRoute, source vnet.Source, add, multipath bool) (uint32, int32) {
	if multipath { // the model replaces whole routes only
		return 0, vnet.RetUnimplemented
	}
	fam := FamilyBit(route.Prefix.Address.Af == ip_types.ADDRESS_IP6)
	index, ok := c.FIBIndex(fam, route.TableID)
	if !ok {
		return 0, vnet.RetNoSuchFIB
	}
	var paths []vnet.Path
	for _, p := range route.Paths {
		path, retval := c.decodePath(fam, p)
		if retval != vnet.RetOK {
			return 0, retval
		}
		paths = append(paths, path)
	}
	prefix, ok := FromPrefix(route.Prefix)
	if !ok {
		return 0, vnet.RetInvalidPrefixLength
	}
	if len(paths) == 0 && add {
		return 0, vnet.RetNoPathsInRoute
	}
	t := c.Tables[fam][index]
	if !add {
		t.Remove(prefix, source)
		if c.CNAT.RealBelowICMP() {
			c.Die(fmt.Sprintf("route %s has gone, and a real address of CNAT is below one that answers with ICMP", prefix))
		}
		return vnet.None, vnet.RetOK
	}
	if !c.Sources.Known(source) {
		c.Die(fmt.Sprintf("route %s of source %d, which does not exist", prefix, source))
		return 0, vnet.RetUnspecified
	}
	stats := t.Set(prefix, source, paths).Stats
	if c.CNAT.RealBelowICMP() {
		c.Die(fmt.Sprintf("route %s answers with ICMP, and a real address of CNAT is below it", prefix))
	}
	return stats, vnet.RetOK
}

// decodePath decodes a path as VPP does: its interface and next hop decide what kind of path it is.
func (c *Call) decodePath(fam int, p fib_types.FibPath) (vnet.Path, int32) {
	path := vnet.Path{SwIf: p.SwIfIndex, Weight: max(p.Weight, 1), Preference: p.Preference, Flags: uint32(p.Flags)}
	switch p.Type {
	case fib_types.FIB_API_PATH_TYPE_LOCAL:
		path.Kind = vnet.Receive
		return path, vnet.RetOK
	case fib_types.FIB_API_PATH_TYPE_DROP:
		path.Kind, path.SwIf = vnet.Drop, vnet.None
		return path, vnet.RetOK
	case fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH:
		path.Kind, path.SwIf = vnet.Unreach, vnet.None
		return path, vnet.RetOK
	case fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT:
		path.Kind, path.SwIf = vnet.Prohibit, vnet.None
		return path, vnet.RetOK
	case fib_types.FIB_API_PATH_TYPE_NORMAL:
		return c.decodeNormalPath(fam, p, path)
	default:
		return path, vnet.RetUnimplemented
	}
}

// decodeNormalPath distinguishes attached, next-hop, recursive and lookup paths.
func (c *Call) decodeNormalPath(fam int, p fib_types.FibPath, path vnet.Path) (vnet.Path, int32) {
	nextHop := netip.AddrFrom4(p.Nh.Address.GetIP4())
	if p.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6 {
		nextHop = netip.AddrFrom16(p.Nh.Address.GetIP6())
	}
	if path.SwIf != vnet.None {
		if c.Interface(path.SwIf) == nil {
			return path, vnet.RetNoMatchingInterface
		}
		path.Kind = vnet.Attached
		if !nextHop.IsUnspecified() {
			path.Kind, path.NextHop = vnet.NextHop, nextHop
		}
		return path, vnet.RetOK
	}
	table, ok := c.FIBIndex(fam, p.TableID)
	if !ok {
		return path, vnet.RetNoSuchFIB
	}
	path.Kind, path.FIB = vnet.Lookup, table
	if !nextHop.IsUnspecified() {
		path.Kind, path.NextHop = vnet.Recursive, nextHop
	}
	return path, vnet.RetOK
}

// encodePath encodes a path for a client.
func (c *Call) encodePath(fam int, p vnet.Path) fib_types.FibPath {
	out := fib_types.FibPath{
		SwIfIndex:  p.SwIf,
		Weight:     p.Weight,
		Preference: p.Preference,
		Flags:      fib_types.FibPathFlags(p.Flags),
		Proto:      fib_types.FibPathNhProto(fam),
	}
	if p.Kind == vnet.Recursive || p.Kind == vnet.Lookup {
		out.SwIfIndex = vnet.None
		out.TableID = c.Tables[fam][p.FIB].ID
	}
	if p.NextHop.IsValid() {
		out.Nh.Address = forwarding.Address(p.NextHop).Un
	}
	switch p.Kind {
	case vnet.Receive:
		out.Type = fib_types.FIB_API_PATH_TYPE_LOCAL
	case vnet.Drop:
		out.Type = fib_types.FIB_API_PATH_TYPE_DROP
	case vnet.Unreach:
		out.Type = fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH
	case vnet.Prohibit:
		out.Type = fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT
	default:
		out.Type = fib_types.FIB_API_PATH_TYPE_NORMAL
	}
	return out
}

// encodeRoute encodes an entry for a client.
func (c *Call) encodeRoute(fam int, t *vnet.Table, e *vnet.Entry) ip.IPRouteV2 {
	route := ip.IPRouteV2{
		TableID:    t.ID,
		StatsIndex: e.Stats,
		Prefix:     forwarding.Prefix(e.Prefix),
		Src:        uint8(e.Best().Source),
	}
	for _, p := range e.Best().Paths {
		route.Paths = append(route.Paths, c.encodePath(fam, p))
	}
	route.NPaths = uint8(len(route.Paths))
	return route
}

// findRoute looks up a prefix, exactly or by longest match.
func (c *Call) findRoute(tableID uint32, p ip_types.Prefix, exact bool) (ip.IPRouteV2, int32) {
	fam := FamilyBit(p.Address.Af == ip_types.ADDRESS_IP6)
	index, ok := c.FIBIndex(fam, tableID)
	if !ok {
		return ip.IPRouteV2{}, vnet.RetNoSuchFIB
	}
	prefix, ok := FromPrefix(p)
	if !ok {
		return ip.IPRouteV2{}, vnet.RetNoSuchEntry
	}
	t := c.Tables[fam][index]
	e := t.Exact(prefix)
	if !exact {
		e = t.Lookup(prefix)
	}
	if e == nil {
		return ip.IPRouteV2{}, vnet.RetNoSuchEntry
	}
	return c.encodeRoute(fam, t, e), vnet.RetOK
}

// eachRoute visits the routes of a table; unless source is 0, only routes of this source that no
// better one hides.
func (c *Call) eachRoute(table ip.IPTable, source vnet.Source, each func(ip.IPRouteV2)) {
	fam := FamilyBit(table.IsIP6)
	index, ok := c.FIBIndex(fam, table.TableID)
	if !ok {
		return
	}
	t := c.Tables[fam][index]
	for _, e := range t.Sorted() {
		if source == 0 || e.Best().Source == source {
			each(c.encodeRoute(fam, t, e))
		}
	}
}

// registerFIB registers the messages of the FIB API.
func registerFIB(r Registry) {
	// FibSourceDump lists all sources with the priority under which they were registered.
	Read(r, func(c *Call, _ *fibapi.FibSourceDump) {
		for _, s := range c.Sources.All {
			c.Reply(&fibapi.FibSourceDetails{Src: fibapi.FibSource{Priority: s.Class, ID: uint8(s.ID), Name: s.Name}})
		}
	})
	// FibSourceAdd registers a source, also under a name that is taken: a client has to look for
	// its own sources before it adds them.
	write(r, func(c *Call, req *fibapi.FibSourceAdd) {
		id := c.Sources.Add(req.Src.Name, req.Src.Priority)
		c.Reply(&fibapi.FibSourceAddReply{ID: uint8(id)})
	})
}

// ipNeighborAddDel adds or deletes an ARP or ND entry, with its host route unless a flag forbids
// it.
func ipNeighborAddDel(c *Call, req *ip_neighbor.IPNeighborAddDel) {
	reply := &ip_neighbor.IPNeighborAddDelReply{StatsIndex: vnet.None}
	key := vnet.NeighborKey{SwIf: uint32(req.Neighbor.SwIfIndex), Addr: forwarding.FromAddress(req.Neighbor.IPAddress)}
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
	for _, key := range c.SortedNeighbors(FamilyBit(req.Af == ip_types.ADDRESS_IP6), uint32(req.SwIfIndex)) {
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
				IPAddress:  forwarding.Address(key.Addr),
			},
		})
	}
}
