package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
)

// Describe writes the whole state.
func (m *Model) Describe() string {
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
	section("interfaces", m.DescribeInterfaces())
	section("neighbors", m.DescribeNeighbors())
	section("routes", m.DescribeRoutes())
	section("features", m.describeFeatures())
	section("acls", m.ACLs.Describe(m.NameOf))
	section("nat44", m.NAT.DescribeConfig())
	section("nat44 addresses", m.NAT.DescribeAddresses())
	section("nat44 interfaces", m.NAT.DescribeRoles())
	section("nat44 mappings", m.NAT.DescribeMappings())
	section("nat44 sessions", m.NAT.DescribeSessions())
	section("cnat", m.CNAT.Describe(m.NameOf))
	return b.String()
}

// describeFeatures lists the nodes that clients put on feature arcs; nodes that follow from NAT
// roles are shown as roles.
func (m *Model) describeFeatures() []string {
	var lines []string
	for key, count := range m.Features {
		switch key.Node {
		case nat.NodeIn2out, nat.NodeOut2in, nat.NodeClassify, nat.NodeOutput:
			continue
		}
		line := fmt.Sprintf("%s %s on %s", key.Arc, key.Node, m.NameOf(key.SwIf))
		if count > 1 {
			line += fmt.Sprintf(" %d times", count)
		}
		lines = append(lines, line)
	}
	return lines
}
