package vnet

import "slices"

// Registration is one source of routes in VPP.
type Registration struct {
	ID    Source
	Name  string
	Class uint8 // priority of the request: lower wins
	slot  uint8 // how many sources of this class were there before
}

// Sources are the sources of routes of VPP, its plugins and its clients. No source is ever
// unregistered.
type Sources struct {
	All []Registration // by id
}

// lastSource is the last id that VPP gives away.
const lastSource = 254

// NewSources returns the sources of a VPP that has just started with the plugins of NAT44 and CNAT.
func NewSources() *Sources {
	s := &Sources{All: make([]Registration, 0, 32)}
	for _, reg := range [...]struct {
		name  string
		class uint8
	}{
		{"invalid", 0xff},
		{"special", 0x00},
		{"classify", 0x01},
		{"proxy", 0x02},
		{"interface", 0x03},
		{"SR", 0x10},
		{"BIER", 0x20},
		{"6RD", 0x30},
		{"API", 0x80},
		{"CLI", 0x81},
		{"LISP", 0x90},
		{"MAP", 0xa0},
		{"DHCP", 0xb0},
		{"IPv6-proxy-nd", 0xc0},
		{"IPv6-nd", 0xc1},
		{"adjacency", 0xd0},
		{"mpls", 0xe0},
		{"attached_export", 0xf0},
		{"recursive-resolution", 0xfb},
		{"urpf-exempt", 0xfc},
		{"default-route", 0xfd},
		{"interpose", 0xfe},
		{"path-mtu", 0x10},
		{"cnat", 0x02},
		{"nat-low", 0xd0},
		{"nat-hi", 0x10},
	} {
		s.Add(reg.name, reg.class)
	}
	return s
}

// Add registers a source. The same name twice makes two sources. It returns 0, which is no source,
// when VPP has no id left; VPP calls that a success.
func (s *Sources) Add(name string, class uint8) Source {
	if len(s.All) > lastSource {
		return 0
	}
	reg := Registration{ID: Source(len(s.All)), Name: name, Class: class}
	for _, other := range s.All {
		if other.Class == class {
			reg.slot++
		}
	}
	s.All = append(s.All, reg)
	return reg.ID
}

// Known reports whether there is such a source.
func (s *Sources) Known(id Source) bool { return int(id) < len(s.All) }

// compare orders sources: the first one wins.
func (s *Sources) compare(a, b Source) int {
	return s.rank(a) - s.rank(b)
}

// rank is the place of a source in the order of all.
func (s *Sources) rank(id Source) int {
	reg := s.All[id]
	return int(reg.Class)<<8 | int(reg.slot)
}

// sort orders the routes of a prefix by their sources.
func (s *Sources) sort(routes []Route) {
	slices.SortStableFunc(routes, func(a, b Route) int { return s.compare(a.Source, b.Source) })
}
