package simulator

import (
	"net/netip"
	"slices"
)

// fibSource is who put a route into the FIB: the ids of fibSources. Those that
// VPP itself uses are named here.
type fibSource uint8

const (
	sourceSpecial   fibSource = 1
	sourceInterface fibSource = 4
	sourceAPI       fibSource = 8
	sourceAdjacency fibSource = 15
	sourceDefault   fibSource = 20
	sourceNAT       fibSource = 24 // "nat-low", allocated by the plugin
)

// pathKind is what a path does with a packet.
type pathKind uint8

const (
	pathAttached  pathKind = iota // onto a link, next hop is the destination
	pathNextHop                   // onto a link, to a fixed next hop
	pathRecursive                 // look up the next hop again
	pathLookup                    // look up the destination in another table
	pathLocal                     // to VPP itself
	pathDrop
	pathUnreach  // ICMP destination unreachable
	pathProhibit // ICMP administratively prohibited
)

// fibPath is one path of a route.
type fibPath struct {
	kind       pathKind
	swIf       uint32 // none if the kind has no interface
	nextHop    netip.Addr
	fib        uint32 // FIB index of recursive and lookup paths
	weight     uint8
	preference uint8
	flags      uint32 // fib_path_flags, given back as they came
}

// fibRoute is what one source says about a prefix.
type fibRoute struct {
	source fibSource
	paths  []fibPath
}

// fibEntry is a prefix with everything its sources say; the first one counts.
type fibEntry struct {
	prefix netip.Prefix // with the host bits of the first one who named it
	routes []fibRoute
	stats  uint32
}

// best returns the paths that are used.
func (e *fibEntry) best() fibRoute { return e.routes[0] }

// fibTable is one routing table (VRF) of one address family.
type fibTable struct {
	id      uint32
	name    string
	ip6     bool
	byAPI   bool // created explicitly: stays until deleted explicitly
	sources *fibSources
	entries map[netip.Prefix]*fibEntry
	lengths [129]int // number of entries per prefix length
	serial  uint32
}

// newFibTable returns a table with VPP's built-in entries.
func newFibTable(id uint32, ip6 bool, sources *fibSources) *fibTable {
	t := &fibTable{id: id, ip6: ip6, sources: sources, entries: make(map[netip.Prefix]*fibEntry)}
	drop := []fibPath{{kind: pathDrop, swIf: none, weight: 1}}
	if ip6 {
		t.set(netip.MustParsePrefix("::/0"), sourceDefault, drop)
		t.set(netip.MustParsePrefix("fe80::/10"), sourceSpecial, drop)
		return t
	}
	t.set(netip.MustParsePrefix("0.0.0.0/0"), sourceDefault, drop)
	t.set(netip.MustParsePrefix("0.0.0.0/32"), sourceDefault, drop)
	t.set(netip.MustParsePrefix("224.0.0.0/4"), sourceSpecial, drop)
	t.set(netip.MustParsePrefix("240.0.0.0/4"), sourceSpecial, drop)
	t.set(netip.MustParsePrefix("255.255.255.255/32"), sourceDefault, drop)
	return t
}

// set makes paths what source says about prefix.
func (t *fibTable) set(prefix netip.Prefix, source fibSource, paths []fibPath) *fibEntry {
	key := prefix.Masked()
	e := t.entries[key]
	if e == nil {
		t.serial++
		e = &fibEntry{prefix: prefix, stats: t.serial}
		t.entries[key] = e
		t.lengths[key.Bits()]++
	}
	if source == sourceInterface {
		e.prefix = prefix
	}
	for i := range e.routes {
		if e.routes[i].source == source {
			e.routes[i].paths = paths
			return e
		}
	}
	e.routes = append(e.routes, fibRoute{source: source, paths: paths})
	t.sources.sort(e.routes)
	return e
}

// paths returns what source says about prefix.
func (t *fibTable) paths(prefix netip.Prefix, source fibSource) []fibPath {
	if e := t.entries[prefix.Masked()]; e != nil {
		for _, r := range e.routes {
			if r.source == source {
				return r.paths
			}
		}
	}
	return nil
}

// remove takes back what source said about prefix.
func (t *fibTable) remove(prefix netip.Prefix, source fibSource) {
	key := prefix.Masked()
	e := t.entries[key]
	if e == nil {
		return
	}
	e.routes = slices.DeleteFunc(e.routes, func(r fibRoute) bool { return r.source == source })
	if len(e.routes) == 0 {
		delete(t.entries, key)
		t.lengths[key.Bits()]--
	}
}

// exact returns the entry of exactly this prefix, or nil.
func (t *fibTable) exact(prefix netip.Prefix) *fibEntry {
	return t.entries[prefix.Masked()]
}

// lookup returns the entry of the longest prefix that covers the given one.
// There is always one: the default route is built in.
func (t *fibTable) lookup(prefix netip.Prefix) *fibEntry {
	for bits := prefix.Bits(); bits >= 0; bits-- {
		if t.lengths[bits] == 0 {
			continue
		}
		if e := t.entries[netip.PrefixFrom(prefix.Addr(), bits).Masked()]; e != nil {
			return e
		}
	}
	return nil
}

// sorted returns all entries in the order of their prefixes.
func (t *fibTable) sorted() []*fibEntry {
	all := make([]*fibEntry, 0, len(t.entries))
	for _, e := range t.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *fibEntry) int {
		if c := a.prefix.Masked().Addr().Compare(b.prefix.Masked().Addr()); c != 0 {
			return c
		}
		return a.prefix.Bits() - b.prefix.Bits()
	})
	return all
}

// fibIndex returns the index of the table with the given id.
func (m *model) fibIndex(fam int, tableID uint32) (uint32, bool) {
	for i, t := range m.tables[fam] {
		if t != nil && t.id == tableID {
			return uint32(i), true
		}
	}
	return none, false
}

// table4 returns the ip4 table with the given FIB index, nil if it is gone.
func (m *model) table4(fib uint32) *fibTable {
	if uint64(fib) >= uint64(len(m.tables[0])) {
		return nil
	}
	return m.tables[0][fib]
}

// findOrCreateFIB returns the index of the table with the given id, which is
// made if there is none: that is what NAT does with every VRF it is told.
func (m *model) findOrCreateFIB(fam int, tableID uint32) uint32 {
	if i, ok := m.fibIndex(fam, tableID); ok {
		return i
	}
	t := newFibTable(tableID, fam == 1, m.sources)
	for i, old := range m.tables[fam] {
		if old == nil {
			m.tables[fam][i] = t
			return uint32(i)
		}
	}
	m.tables[fam] = append(m.tables[fam], t)
	return uint32(len(m.tables[fam]) - 1)
}

// hop is where the FIB sends a packet.
type hop struct {
	kind    pathKind // pathNextHop, pathLocal, pathDrop, pathUnreach or pathProhibit
	swIf    uint32
	nextHop netip.Addr
	reason  string
}

// maxRecursion bounds how often a next hop is looked up again.
const maxRecursion = 8

// forward looks up dst in a table and follows recursive paths down to an
// interface. src takes part in the choice among equal paths.
func (m *model) forward(fib uint32, dst, src netip.Addr) hop {
	fam := family(dst)
	target := dst
	for range maxRecursion {
		if uint64(fib) >= uint64(len(m.tables[fam])) || m.tables[fam][fib] == nil {
			return hop{kind: pathDrop, swIf: none, reason: "no such table"}
		}
		e := m.tables[fam][fib].lookup(netip.PrefixFrom(target, target.BitLen()))
		p, ok := m.choose(e.best().paths, dst, src)
		if !ok {
			return hop{kind: pathDrop, swIf: none, reason: "no usable path for " + e.prefix.String()}
		}
		switch p.kind {
		case pathRecursive:
			fib, target = p.fib, p.nextHop
		case pathLookup:
			fib = p.fib
		case pathAttached:
			return m.onto(p.swIf, target)
		case pathNextHop:
			return m.onto(p.swIf, p.nextHop)
		default:
			return hop{kind: p.kind, swIf: p.swIf, reason: "route " + e.prefix.String()}
		}
	}
	return hop{kind: pathDrop, swIf: none, reason: "recursion loop"}
}

// onto is the hop over an interface, if it can send.
func (m *model) onto(swIf uint32, nextHop netip.Addr) hop {
	if i := m.iface(swIf); i == nil || !i.adminUp {
		return hop{kind: pathDrop, swIf: none, reason: "interface down"}
	}
	return hop{kind: pathNextHop, swIf: swIf, nextHop: nextHop}
}

// flowHash decides among equal paths; the same flow takes the same one (FNV-1a).
func flowHash(dst, src netip.Addr) uint64 {
	h := uint64(14695981039346656037)
	for _, addr := range [2]netip.Addr{dst, src} {
		for _, b := range addr.As16() {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	return h
}

// choose picks a path: the best preference among those whose interface is up,
// by weight and flow.
func (m *model) choose(paths []fibPath, dst, src netip.Addr) (fibPath, bool) {
	usable := make([]fibPath, 0, len(paths))
	for _, p := range paths {
		if p.kind == pathAttached || p.kind == pathNextHop {
			if i := m.iface(p.swIf); i == nil || !i.adminUp {
				continue
			}
		}
		if len(usable) > 0 && p.preference < usable[0].preference {
			usable = usable[:0]
		}
		if len(usable) == 0 || p.preference == usable[0].preference {
			usable = append(usable, p)
		}
	}
	if len(usable) < 2 {
		return first(usable)
	}
	sum := uint64(0)
	for _, p := range usable {
		sum += uint64(p.weight)
	}
	at := flowHash(dst, src) % max(sum, 1)
	for _, p := range usable {
		if at < uint64(p.weight) {
			return p, true
		}
		at -= uint64(p.weight)
	}
	return first(usable)
}

// first returns the first path, if there is one.
func first(paths []fibPath) (fibPath, bool) {
	if len(paths) == 0 {
		return fibPath{}, false
	}
	return paths[0], true
}
