package simulator

import (
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

// registerIP registers the messages of the IP API.
func registerIP(r registry) {
	read(r, ipAddressDump)
	read(r, ipTableDump)
	read(r, ipRouteLookup)
	read(r, ipRouteLookupV2)
	read(r, ipRouteDump)
	read(r, ipRouteV2Dump)
	read(r, ipUnnumberedDump)
	write(r, ipTableAddDel)
	write(r, ipTableAddDelV2)
	write(r, ipRouteAddDel)
	write(r, ipRouteAddDelV2)
}

func ipAddressDump(c *call, req *ip.IPAddressDump) {
	i := c.iface(uint32(req.SwIfIndex))
	if i == nil {
		return
	}
	for _, p := range i.addrs {
		if p.Addr().Is4() != req.IsIPv6 {
			c.reply(&ip.IPAddressDetails{SwIfIndex: req.SwIfIndex, Prefix: ip_types.AddressWithPrefix(toPrefix(p))})
		}
	}
}

func ipUnnumberedDump(c *call, req *ip.IPUnnumberedDump) {
	for _, i := range c.interfaces.all {
		if i.borrows != none && (uint32(req.SwIfIndex) == none || uint32(req.SwIfIndex) == i.index) {
			c.reply(&ip.IPUnnumberedDetails{
				SwIfIndex:   interface_types.InterfaceIndex(i.index),
				IPSwIfIndex: interface_types.InterfaceIndex(i.borrows),
			})
		}
	}
}

func ipTableDump(c *call, _ *ip.IPTableDump) {
	for fam, tables := range c.tables {
		for _, t := range tables {
			if t != nil {
				c.reply(&ip.IPTableDetails{Table: ip.IPTable{TableID: t.id, IsIP6: fam == 1, Name: t.name}})
			}
		}
	}
}

func ipTableAddDel(c *call, req *ip.IPTableAddDel) {
	c.changeTable(req.Table, req.IsAdd)
	c.reply(&ip.IPTableAddDelReply{})
}

func ipTableAddDelV2(c *call, req *ip.IPTableAddDelV2) {
	c.changeTable(req.Table, req.IsAdd)
	c.reply(&ip.IPTableAddDelV2Reply{})
}

// changeTable creates a table or takes back its creation; a table that
// interfaces or NAT still use stays.
func (m *model) changeTable(req ip.IPTable, add bool) {
	fam := familyBit(req.IsIP6)
	if add {
		t := m.tables[fam][m.findOrCreateFIB(fam, req.TableID)]
		t.byAPI, t.name = true, req.Name
		return
	}
	index, ok := m.fibIndex(fam, req.TableID)
	if !ok || index == 0 {
		return
	}
	t := m.tables[fam][index]
	t.byAPI = false
	for _, p := range t.sorted() {
		t.remove(p.prefix, sourceAPI)
	}
	for _, i := range m.interfaces.all {
		if i.fib[fam] == index {
			return
		}
	}
	if fam == 0 {
		m.nat.tableGone(index)
		if m.nat.usesFIB(index) {
			return
		}
	}
	m.tables[fam][index] = nil
}

func ipRouteAddDel(c *call, req *ip.IPRouteAddDel) {
	stats, retval := c.changeRoute(req.Route, sourceAPI, req.IsAdd, req.IsMultipath)
	c.reply(&ip.IPRouteAddDelReply{Retval: retval, StatsIndex: stats})
}

func ipRouteAddDelV2(c *call, req *ip.IPRouteAddDelV2) {
	route := ip.IPRoute{TableID: req.Route.TableID, Prefix: req.Route.Prefix, Paths: req.Route.Paths}
	source := fibSource(req.Route.Src)
	if source == 0 {
		source = sourceAPI
	}
	stats, retval := c.changeRoute(route, source, req.IsAdd, req.IsMultipath)
	c.reply(&ip.IPRouteAddDelV2Reply{Retval: retval, StatsIndex: stats})
}

// changeRoute does what an ip_route_add_del asks for and returns the index of
// the route's counters. A route of a source that does not exist makes VPP read
// behind the end of its table: it dies, or adds a drop that beats every other
// source. The simulated one always dies.
func (m *model) changeRoute(route ip.IPRoute, source fibSource, add, multipath bool) (uint32, int32) {
	fam := familyBit(route.Prefix.Address.Af == ip_types.ADDRESS_IP6)
	index, ok := m.fibIndex(fam, route.TableID)
	if !ok {
		return 0, retNoSuchFIB
	}
	var paths []fibPath
	for _, p := range route.Paths {
		path, retval := m.decodePath(fam, p)
		if retval != retOK {
			return 0, retval
		}
		paths = append(paths, path)
	}
	prefix, ok := fromPrefix(route.Prefix)
	if !ok {
		return 0, retInvalidPrefixLength
	}
	if len(paths) == 0 && (add || multipath) {
		return 0, retNoPathsInRoute
	}
	t := m.tables[fam][index]
	if multipath {
		paths = mergePaths(t.paths(prefix, source), paths, add)
	}
	if (!add && !multipath) || len(paths) == 0 {
		t.remove(prefix, source)
		return none, retOK
	}
	if !m.sources.known(source) {
		m.die(fmt.Sprintf("route %s of source %d, which does not exist", prefix, source))
		return 0, retUnspecified
	}
	return t.set(prefix, source, paths).stats, retOK
}

// mergePaths adds paths to a route or takes them out of it.
func mergePaths(have, change []fibPath, add bool) []fibPath {
	same := func(a, b fibPath) bool {
		return a.kind == b.kind && a.swIf == b.swIf && a.nextHop == b.nextHop && a.fib == b.fib
	}
	out := slices.Clone(have)
	for _, p := range change {
		out = slices.DeleteFunc(out, func(q fibPath) bool { return same(p, q) })
		if add {
			out = append(out, p)
		}
	}
	return out
}

// decodePath decodes a path as VPP does: its interface and next hop decide
// what kind of path it is.
func (m *model) decodePath(fam int, p fib_types.FibPath) (fibPath, int32) {
	path := fibPath{swIf: p.SwIfIndex, weight: max(p.Weight, 1), preference: p.Preference, flags: uint32(p.Flags)}
	switch p.Type {
	case fib_types.FIB_API_PATH_TYPE_LOCAL:
		path.kind = pathLocal
		return path, retOK
	case fib_types.FIB_API_PATH_TYPE_DROP:
		path.kind, path.swIf = pathDrop, none
		return path, retOK
	case fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH:
		path.kind, path.swIf = pathUnreach, none
		return path, retOK
	case fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT:
		path.kind, path.swIf = pathProhibit, none
		return path, retOK
	case fib_types.FIB_API_PATH_TYPE_NORMAL:
		return m.decodeNormalPath(fam, p, path)
	default:
		return path, retUnimplemented
	}
}

// decodeNormalPath tells apart attached, next-hop, recursive and lookup paths.
func (m *model) decodeNormalPath(fam int, p fib_types.FibPath, path fibPath) (fibPath, int32) {
	nextHop := netip.AddrFrom4(p.Nh.Address.GetIP4())
	if p.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6 {
		nextHop = netip.AddrFrom16(p.Nh.Address.GetIP6())
	}
	if path.swIf != none {
		if m.iface(path.swIf) == nil {
			return path, retNoMatchingInterface
		}
		path.kind = pathAttached
		if !nextHop.IsUnspecified() {
			path.kind, path.nextHop = pathNextHop, nextHop
		}
		return path, retOK
	}
	fib, ok := m.fibIndex(fam, p.TableID)
	if !ok {
		return path, retNoSuchFIB
	}
	path.kind, path.fib = pathLookup, fib
	if !nextHop.IsUnspecified() {
		path.kind, path.nextHop = pathRecursive, nextHop
	}
	return path, retOK
}

// encodePath encodes a path for a client.
func (m *model) encodePath(fam int, p fibPath) fib_types.FibPath {
	out := fib_types.FibPath{
		SwIfIndex:  p.swIf,
		Weight:     p.weight,
		Preference: p.preference,
		Flags:      fib_types.FibPathFlags(p.flags),
		Proto:      fib_types.FibPathNhProto(fam),
	}
	if p.kind == pathRecursive || p.kind == pathLookup {
		out.SwIfIndex = none
		if t := m.tables[fam][p.fib]; t != nil {
			out.TableID = t.id
		}
	}
	if p.nextHop.IsValid() {
		out.Nh.Address = toAddress(p.nextHop).Un
	}
	switch p.kind {
	case pathLocal:
		out.Type = fib_types.FIB_API_PATH_TYPE_LOCAL
	case pathDrop:
		out.Type = fib_types.FIB_API_PATH_TYPE_DROP
	case pathUnreach:
		out.Type = fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH
	case pathProhibit:
		out.Type = fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT
	default:
		out.Type = fib_types.FIB_API_PATH_TYPE_NORMAL
	}
	return out
}

// encodeRoute encodes an entry for a client.
func (m *model) encodeRoute(fam int, t *fibTable, e *fibEntry) ip.IPRouteV2 {
	route := ip.IPRouteV2{
		TableID:    t.id,
		StatsIndex: e.stats,
		Prefix:     toPrefix(e.prefix),
		Src:        uint8(e.best().source),
	}
	for _, p := range e.best().paths {
		route.Paths = append(route.Paths, m.encodePath(fam, p))
	}
	route.NPaths = uint8(len(route.Paths))
	return route
}

// withoutSource is the older form of a route on the wire.
func withoutSource(r ip.IPRouteV2) ip.IPRoute {
	return ip.IPRoute{TableID: r.TableID, StatsIndex: r.StatsIndex, Prefix: r.Prefix, NPaths: r.NPaths, Paths: r.Paths}
}

// findRoute looks up a prefix, exactly or by longest match.
func (m *model) findRoute(tableID uint32, p ip_types.Prefix, exact bool) (ip.IPRouteV2, int32) {
	fam := familyBit(p.Address.Af == ip_types.ADDRESS_IP6)
	index, ok := m.fibIndex(fam, tableID)
	if !ok {
		return ip.IPRouteV2{}, retNoSuchFIB
	}
	prefix, ok := fromPrefix(p)
	if !ok {
		return ip.IPRouteV2{}, retNoSuchEntry
	}
	t := m.tables[fam][index]
	e := t.exact(prefix)
	if !exact {
		e = t.lookup(prefix)
	}
	if e == nil {
		return ip.IPRouteV2{}, retNoSuchEntry
	}
	return m.encodeRoute(fam, t, e), retOK
}

func ipRouteLookup(c *call, req *ip.IPRouteLookup) {
	route, retval := c.findRoute(req.TableID, req.Prefix, req.Exact != 0)
	c.reply(&ip.IPRouteLookupReply{Retval: retval, Route: withoutSource(route)})
}

func ipRouteLookupV2(c *call, req *ip.IPRouteLookupV2) {
	route, retval := c.findRoute(req.TableID, req.Prefix, req.Exact != 0)
	c.reply(&ip.IPRouteLookupV2Reply{Retval: retval, Route: route})
}

func ipRouteDump(c *call, req *ip.IPRouteDump) {
	c.eachRoute(req.Table, 0, func(r ip.IPRouteV2) { c.reply(&ip.IPRouteDetails{Route: withoutSource(r)}) })
}

func ipRouteV2Dump(c *call, req *ip.IPRouteV2Dump) {
	c.eachRoute(req.Table, fibSource(req.Src), func(r ip.IPRouteV2) { c.reply(&ip.IPRouteV2Details{Route: r}) })
}

// eachRoute visits the routes of a table; unless source is 0, those that are
// used because this source says so: what a better one hides is not visited.
func (m *model) eachRoute(table ip.IPTable, source fibSource, each func(ip.IPRouteV2)) {
	fam := familyBit(table.IsIP6)
	index, ok := m.fibIndex(fam, table.TableID)
	if !ok {
		return
	}
	t := m.tables[fam][index]
	for _, e := range t.sorted() {
		if source == 0 || e.best().source == source {
			each(m.encodeRoute(fam, t, e))
		}
	}
}
