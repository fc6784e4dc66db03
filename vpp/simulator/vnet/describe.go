package vnet

import (
	"fmt"
	"strings"
)

// DescribeInterfaces lists the interfaces.
func (m *Network) DescribeInterfaces() []string {
	var lines []string
	for _, i := range m.Interfaces.All {
		state := "down"
		if i.AdminUp {
			state = "up"
		}
		line := fmt.Sprintf("%3d %s (%s) %s", i.Index, i.Name, i.DevType, state)
		for _, p := range i.Addrs {
			line += " " + p.String()
		}
		if i.FIB[0] != 0 {
			line += fmt.Sprintf(" table %d", m.Tables[0][i.FIB[0]].ID)
		}
		lines = append(lines, line)
	}
	return lines
}

// DescribeNeighbors lists the neighbours.
func (m *Network) DescribeNeighbors() []string {
	var lines []string
	for key, n := range m.Neighbors {
		kind := "dynamic"
		if n.Static {
			kind = "static"
		}
		lines = append(lines, fmt.Sprintf("%s on %s %s", key.Addr, m.NameOf(key.SwIf), kind))
	}
	return lines
}

// NameOf returns the name of an interface for humans.
func (m *Network) NameOf(swIf uint32) string {
	if i := m.Interface(swIf); i != nil {
		return i.Name
	}
	return fmt.Sprintf("if%d", swIf)
}

// DescribeRoutes lists the routes, without VPP's built-in ones.
func (m *Network) DescribeRoutes() []string {
	var lines []string
	for _, tables := range m.Tables {
		for _, t := range tables {
			for _, e := range t.Sorted() {
				if s := e.Best().Source; s == SourceDefault || s == SourceSpecial {
					continue
				}
				lines = append(lines, fmt.Sprintf("table %d %s %s", t.ID, e.Prefix, m.describePaths(e.Best())))
			}
		}
	}
	return lines
}

// describePaths describes the paths of a route.
func (m *Network) describePaths(r Route) string {
	var parts []string
	for _, p := range r.Paths {
		switch p.Kind {
		case Attached:
			parts = append(parts, "on "+m.NameOf(p.SwIf))
		case NextHop:
			parts = append(parts, fmt.Sprintf("via %s on %s", p.NextHop, m.NameOf(p.SwIf)))
		case Recursive:
			parts = append(parts, fmt.Sprintf("via %s", p.NextHop))
		case Lookup:
			parts = append(parts, "lookup")
		case Receive:
			parts = append(parts, "local")
		case Drop:
			parts = append(parts, "drop")
		case Unreach:
			parts = append(parts, "unreachable")
		case Prohibit:
			parts = append(parts, "prohibited")
		}
	}
	if r.Source == SourceNAT {
		parts = append(parts, "(nat)")
	}
	return strings.Join(parts, ", ")
}
