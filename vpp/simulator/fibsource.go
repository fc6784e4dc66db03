package simulator

import "slices"

// sourceReg is one source of routes that VPP knows.
type sourceReg struct {
	id    fibSource
	name  string
	class uint8 // priority as it was asked for: lower wins
	slot  uint8 // how many sources of this class were there before
}

// fibSources are the sources of routes: those of VPP, of its plugins, and
// those that clients have registered. Nothing ever unregisters one.
type fibSources struct {
	all []sourceReg // by id
}

// lastSource is the last id that VPP gives away.
const lastSource = 254

// newFibSources returns the sources of a VPP that has just started with the
// plugins of NAT44 and CNAT.
func newFibSources() *fibSources {
	s := &fibSources{all: make([]sourceReg, 0, 32)}
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
		s.add(reg.name, reg.class)
	}
	return s
}

// add registers a source. The same name twice makes two sources. It returns 0,
// which is no source, when VPP has no id left; VPP calls that a success.
func (s *fibSources) add(name string, class uint8) fibSource {
	if len(s.all) > lastSource {
		return 0
	}
	reg := sourceReg{id: fibSource(len(s.all)), name: name, class: class}
	for _, other := range s.all {
		if other.class == class {
			reg.slot++
		}
	}
	s.all = append(s.all, reg)
	return reg.id
}

// known reports whether there is such a source.
func (s *fibSources) known(id fibSource) bool { return int(id) < len(s.all) }

// compare orders sources: the first one wins.
func (s *fibSources) compare(a, b fibSource) int {
	return s.rank(a) - s.rank(b)
}

// rank is the place of a source in the order of all.
func (s *fibSources) rank(id fibSource) int {
	reg := s.all[id]
	return int(reg.class)<<8 | int(reg.slot)
}

// sort orders what the sources say about a prefix.
func (s *fibSources) sort(routes []fibRoute) {
	slices.SortStableFunc(routes, func(a, b fibRoute) int { return s.compare(a.source, b.source) })
}
