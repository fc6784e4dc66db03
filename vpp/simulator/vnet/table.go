package vnet

import (
	"net/netip"
	"slices"
)

// Source is the id of a source of routes, as registered in Sources.
type Source uint8

// The sources that VPP itself uses, by their ids.
const (
	SourceSpecial   Source = 1
	SourceInterface Source = 4
	SourceAPI       Source = 8
	SourceAdjacency Source = 15
	SourceDefault   Source = 20
	SourceCNAT      Source = 23 // allocated by the plugin, as is the next one
	SourceNAT       Source = 24 // "nat-low"
)

// Kind is what a path does with a packet.
type Kind uint8

// The kinds of paths.
const (
	Attached  Kind = iota // onto a link, next hop is the destination
	NextHop               // onto a link, to a fixed next hop
	Recursive             // look up the next hop again
	Lookup                // look up the destination in another table
	Receive               // to VPP itself
	Drop
	Unreach  // ICMP destination unreachable
	Prohibit // ICMP administratively prohibited
)

// Path is one path of a route.
type Path struct {
	Kind       Kind
	SwIf       uint32 // none if the kind has no interface
	NextHop    netip.Addr
	FIB        uint32 // FIB index of recursive and lookup paths
	Weight     uint8
	Preference uint8
	Flags      uint32 // fib_path_flags, given back as they came
}

// Route is the entry of one source for a prefix.
type Route struct {
	Source Source
	Paths  []Path
}

// Entry is a prefix with the routes of all its sources; the first one counts.
type Entry struct {
	Prefix netip.Prefix // with the host bits of the first request for it
	routes []Route
	Stats  uint32
}

// Best returns the paths that are used.
func (e *Entry) Best() Route { return e.routes[0] }

// Table is one routing table (VRF) of one address family.
type Table struct {
	ID      uint32
	Name    string
	ip6     bool
	sources *Sources
	entries map[netip.Prefix]*Entry
	lengths [129]int // number of entries per prefix length
	serial  uint32
}

// NewTable returns a table with VPP's built-in entries.
func NewTable(id uint32, ip6 bool, sources *Sources) *Table {
	t := &Table{ID: id, ip6: ip6, sources: sources, entries: make(map[netip.Prefix]*Entry)}
	drop := []Path{{Kind: Drop, SwIf: None, Weight: 1}}
	if ip6 {
		t.Set(netip.MustParsePrefix("::/0"), SourceDefault, drop)
		t.Set(netip.MustParsePrefix("fe80::/10"), SourceSpecial, drop)
		return t
	}
	t.Set(netip.MustParsePrefix("0.0.0.0/0"), SourceDefault, drop)
	t.Set(netip.MustParsePrefix("0.0.0.0/32"), SourceDefault, drop)
	t.Set(netip.MustParsePrefix("224.0.0.0/4"), SourceSpecial, drop)
	t.Set(netip.MustParsePrefix("240.0.0.0/4"), SourceSpecial, drop)
	t.Set(netip.MustParsePrefix("255.255.255.255/32"), SourceDefault, drop)
	return t
}

// Set sets the paths of the entry of source for prefix.
func (t *Table) Set(prefix netip.Prefix, source Source, paths []Path) *Entry {
	key := prefix.Masked()
	e := t.entries[key]
	if e == nil {
		t.serial++
		e = &Entry{Prefix: prefix, Stats: t.serial}
		t.entries[key] = e
		t.lengths[key.Bits()]++
	}
	if source == SourceInterface {
		e.Prefix = prefix
	}
	for i := range e.routes {
		if e.routes[i].Source == source {
			e.routes[i].Paths = paths
			return e
		}
	}
	e.routes = append(e.routes, Route{Source: source, Paths: paths})
	t.sources.sort(e.routes)
	return e
}

// Paths returns the paths of the entry of source for prefix.
func (t *Table) Paths(prefix netip.Prefix, source Source) []Path {
	if e := t.entries[prefix.Masked()]; e != nil {
		for _, r := range e.routes {
			if r.Source == source {
				return r.Paths
			}
		}
	}
	return nil
}

// Remove deletes the route of source for prefix.
func (t *Table) Remove(prefix netip.Prefix, source Source) {
	key := prefix.Masked()
	e := t.entries[key]
	if e == nil {
		return
	}
	e.routes = slices.DeleteFunc(e.routes, func(r Route) bool { return r.Source == source })
	if len(e.routes) == 0 {
		delete(t.entries, key)
		t.lengths[key.Bits()]--
	}
}

// Exact returns the entry of exactly this prefix, or nil.
func (t *Table) Exact(prefix netip.Prefix) *Entry {
	return t.entries[prefix.Masked()]
}

// Lookup returns the entry of the longest prefix that covers the given one. There is always one:
// the default route is built in.
func (t *Table) Lookup(prefix netip.Prefix) *Entry {
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

// Hidden returns how many routes of a source are hidden by a route of another source.
func (t *Table) Hidden(source Source) (n int) {
	for _, e := range t.entries {
		if slices.ContainsFunc(e.routes[1:], func(r Route) bool { return r.Source == source }) {
			n++
		}
	}
	return n
}

// Sorted returns all entries in the order of their prefixes.
func (t *Table) Sorted() []*Entry {
	all := make([]*Entry, 0, len(t.entries))
	for _, e := range t.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Entry) int {
		if c := a.Prefix.Masked().Addr().Compare(b.Prefix.Masked().Addr()); c != 0 {
			return c
		}
		return a.Prefix.Bits() - b.Prefix.Bits()
	})
	return all
}

// DropAttached removes the API routes that lead only through an interface.
func (t *Table) DropAttached(swIf uint32) {
	for _, e := range t.Sorted() {
		paths := t.Paths(e.Prefix, SourceAPI)
		if len(paths) == 1 && paths[0].SwIf == swIf {
			t.Remove(e.Prefix, SourceAPI)
		}
	}
}
