package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// State returns the configuration and the sessions of the running VPP as text,
// one object per line, sorted within each section, so that two states can be
// compared line by line. Counters, times and pool indexes are not in it. It is
// empty while VPP is down.
func (v *VPP) State() string {
	var text string
	_ = v.with(func(m *model) error {
		text = m.describe()
		return nil
	})
	return text
}

// Rows returns the mappings of the NAT plugin as text, one per line, sorted:
// the part of State that a renderer is responsible for.
func (v *VPP) Rows() []string {
	var rows []string
	_ = v.with(func(m *model) error {
		rows = m.nat.describeMappings()
		return nil
	})
	return rows
}

// describe writes the whole state.
func (m *model) describe() string {
	var b strings.Builder
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		slices.Sort(lines)
		fmt.Fprintf(&b, "%s\n", title)
		for _, line := range lines {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	section("interfaces", m.describeInterfaces())
	section("neighbors", m.describeNeighbors())
	section("routes", m.describeRoutes())
	section("features", m.describeFeatures())
	section("acls", m.describeACLs())
	section("nat44", m.nat.describeConfig())
	section("nat44 addresses", m.nat.describeAddresses())
	section("nat44 interfaces", m.nat.describeRoles())
	section("nat44 mappings", m.nat.describeMappings())
	section("nat44 sessions", m.nat.describeSessions())
	return b.String()
}

func (m *model) describeInterfaces() []string {
	var lines []string
	for _, i := range m.interfaces.all {
		state := "down"
		if i.adminUp {
			state = "up"
		}
		line := fmt.Sprintf("%3d %s (%s) %s", i.index, i.name, i.devType, state)
		for _, p := range i.addrs {
			line += " " + p.String()
		}
		if i.fib[0] != 0 {
			line += fmt.Sprintf(" table %d", m.tables[0][i.fib[0]].id)
		}
		if i.tag != "" {
			line += fmt.Sprintf(" tag %q", i.tag)
		}
		lines = append(lines, line)
	}
	return lines
}

func (m *model) describeNeighbors() []string {
	var lines []string
	for key, n := range m.neighbors {
		kind := "dynamic"
		if n.static {
			kind = "static"
		}
		lines = append(lines, fmt.Sprintf("%s on %s %s", key.addr, m.nameOf(key.swIf), kind))
	}
	return lines
}

// nameOf returns the name of an interface for humans.
func (m *model) nameOf(swIf uint32) string {
	if i := m.iface(swIf); i != nil {
		return i.name
	}
	return fmt.Sprintf("if%d", swIf)
}

// describeRoutes lists the routes, without VPP's built-in ones.
func (m *model) describeRoutes() []string {
	var lines []string
	for _, tables := range m.tables {
		for _, t := range tables {
			if t == nil {
				continue
			}
			for _, e := range t.sorted() {
				if s := e.best().source; s == sourceDefault || s == sourceSpecial {
					continue
				}
				lines = append(lines, fmt.Sprintf("table %d %s %s", t.id, e.prefix, m.describePaths(e.best())))
			}
		}
	}
	return lines
}

// describePaths describes the paths of a route.
func (m *model) describePaths(r fibRoute) string {
	var parts []string
	for _, p := range r.paths {
		switch p.kind {
		case pathAttached:
			parts = append(parts, "on "+m.nameOf(p.swIf))
		case pathNextHop:
			parts = append(parts, fmt.Sprintf("via %s on %s", p.nextHop, m.nameOf(p.swIf)))
		case pathRecursive:
			parts = append(parts, fmt.Sprintf("via %s", p.nextHop))
		case pathLookup:
			parts = append(parts, "lookup")
		case pathLocal:
			parts = append(parts, "local")
		case pathDrop:
			parts = append(parts, "drop")
		case pathUnreach:
			parts = append(parts, "unreachable")
		case pathProhibit:
			parts = append(parts, "prohibited")
		}
	}
	if r.source == sourceNAT {
		parts = append(parts, "(nat)")
	}
	return strings.Join(parts, ", ")
}

// describeFeatures lists the nodes that clients put on feature arcs; those
// that follow from NAT roles are shown as roles.
func (m *model) describeFeatures() []string {
	var lines []string
	for key, count := range m.features {
		switch key.node {
		case nodeIn2out, nodeOut2in, nodeClassify, nodeOutput:
			continue
		}
		line := fmt.Sprintf("%s %s on %s", key.arc, key.node, m.nameOf(key.swIf))
		if count > 1 {
			line += fmt.Sprintf(" %d times", count)
		}
		lines = append(lines, line)
	}
	return lines
}

func (n *nat44) describeConfig() []string {
	if !n.enabled {
		return []string{"disabled"}
	}
	t := n.timeouts
	return []string{
		"enabled",
		fmt.Sprintf("forwarding %t", n.forwarding),
		fmt.Sprintf("session limits %v", n.limits),
		fmt.Sprintf("timeouts udp %d tcp-established %d tcp-transitory %d icmp %d",
			t.udp, t.tcpEstablished, t.tcpTransitory, t.icmp),
	}
}

func (n *nat44) describeAddresses() []string {
	var lines []string
	for _, a := range n.pool {
		lines = append(lines, a.addr.String()+" pool")
	}
	for _, a := range n.twice {
		lines = append(lines, a.addr.String()+" twice-nat")
	}
	return lines
}

func (n *nat44) describeRoles() []string {
	var lines []string
	for _, i := range n.inOut.all {
		line := n.m.nameOf(i.swIf)
		if i.inside {
			line += " in"
		}
		if i.outside {
			line += " out"
		}
		lines = append(lines, line)
	}
	for _, i := range n.output.all {
		lines = append(lines, n.m.nameOf(i.swIf)+" output")
	}
	return lines
}

// describeMappings lists the mappings, with the backends of a load-balancing
// one sorted.
func (n *nat44) describeMappings() []string {
	var lines []string
	for _, mp := range n.mappings.all {
		lines = append(lines, mp.describe())
	}
	for _, b := range n.unbound {
		if !b.resolved {
			lines = append(lines, fmt.Sprintf("%s/%d of interface %s unresolved", b.external, b.proto, n.m.nameOf(b.swIf)))
		}
	}
	slices.Sort(lines)
	return lines
}

// describe writes one mapping.
func (mp *mapping) describe() string {
	line := fmt.Sprintf("%s/%d", mp.external, mp.proto)
	switch {
	case mp.flags.has(mapLB):
		var backends []string
		for _, l := range mp.locals.all {
			backends = append(backends, fmt.Sprintf("%s weight %d", l.at, l.probability))
		}
		slices.Sort(backends)
		line += " lb [" + strings.Join(backends, ", ") + "]"
	case mp.flags.has(mapIdentity):
		line += " identity"
	default:
		line += " to " + mp.local.String()
	}
	for _, f := range []struct {
		flag mappingFlags
		name string
	}{
		{mapAddrOnly, "addr-only"},
		{mapOut2inOnly, "out2in-only"},
		{mapSelfTwice, "self-twice-nat"},
		{mapTwice, "twice-nat"},
	} {
		if mp.flags.has(f.flag) {
			line += " " + f.name
		}
	}
	if mp.affinity > 0 {
		line += fmt.Sprintf(" affinity %d", mp.affinity)
	}
	if mp.tag != "" {
		line += fmt.Sprintf(" tag %q", mp.tag)
	}
	return line
}

func (n *nat44) describeSessions() []string {
	var lines []string
	for _, s := range n.sessions.all {
		line := fmt.Sprintf("%d %s > %s > %s", s.proto, s.ext, s.outside, s.inside)
		if s.has(sessionTwice) {
			line += " as " + s.extNAT.String()
		}
		if s.has(sessionBypass) {
			line += " bypass"
		}
		if n.timedOut(s) {
			line += " timed out"
		}
		lines = append(lines, line)
	}
	return lines
}

// SessionCount returns how many sessions occupy the session table, dead ones
// included.
func (v *VPP) SessionCount() int {
	count := 0
	_ = v.with(func(m *model) error {
		count = m.nat.sessions.len()
		return nil
	})
	return count
}

// Interfaces returns the sw_if_index of every interface by name.
func (v *VPP) Interfaces() map[string]uint32 {
	var all map[string]uint32
	_ = v.with(func(m *model) error {
		all = maps.Clone(m.byName)
		return nil
	})
	return all
}
