package nat

import (
	"fmt"
	"slices"
	"strings"
)

// DescribeConfig lists the settings of the plugin.
func (n *Plugin) DescribeConfig() []string {
	if !n.Enabled {
		return []string{"disabled"}
	}
	t := n.Timeouts
	return []string{
		"enabled",
		fmt.Sprintf("forwarding %t", n.Forwarding),
		fmt.Sprintf("session limits %v", n.limits),
		fmt.Sprintf("timeouts udp %d tcp-established %d tcp-transitory %d icmp %d",
			t.UDP, t.TCPEstablished, t.TCPTransitory, t.ICMP),
	}
}

// DescribeAddresses lists the address pools.
func (n *Plugin) DescribeAddresses() []string {
	var lines []string
	for _, a := range n.Pool {
		lines = append(lines, a.Addr.String()+" pool")
	}
	for _, a := range n.Twice {
		lines = append(lines, a.Addr.String()+" twice-nat")
	}
	return lines
}

// DescribeRoles lists the interfaces with NAT roles.
func (n *Plugin) DescribeRoles() []string {
	var lines []string
	for _, i := range n.InOut.All {
		line := n.net.NameOf(i.SwIf)
		if i.Inside {
			line += " in"
		}
		if i.Outside {
			line += " out"
		}
		lines = append(lines, line)
	}
	for _, i := range n.Output.All {
		lines = append(lines, n.net.NameOf(i.SwIf)+" output")
	}
	return lines
}

// DescribeMappings lists the mappings, ordered, with the entries of a load-balancing one in the
// order of VPP.
func (n *Plugin) DescribeMappings() []string {
	var lines []string
	for _, mp := range n.Mappings.All {
		lines = append(lines, mp.describe())
	}
	slices.Sort(lines)
	return lines
}

// describe writes one mapping.
func (mp *Mapping) describe() string {
	line := fmt.Sprintf("%s/%d", mp.External, mp.Proto)
	switch {
	case mp.Flags.Has(MapLB):
		var backends []string
		for _, l := range mp.Locals.All {
			backend := fmt.Sprintf("%s weight %d", l.At, l.Probability)
			if l.VRF != 0 {
				backend += fmt.Sprintf(" vrf %d", l.VRF)
			}
			backends = append(backends, backend)
		}
		line += " lb [" + strings.Join(backends, ", ") + "]"
	case mp.Flags.Has(MapIdentity):
		line += " identity"
	default:
		line += " to " + mp.Local.String()
	}
	for _, f := range []struct {
		flag Flags
		name string
	}{
		{MapAddrOnly, "addr-only"},
		{MapOut2inOnly, "out2in-only"},
		{MapSelfTwice, "self-twice-nat"},
		{MapTwice, "twice-nat"},
	} {
		if mp.Flags.Has(f.flag) {
			line += " " + f.name
		}
	}
	if mp.Affinity > 0 {
		line += fmt.Sprintf(" affinity %d", mp.Affinity)
	}
	if mp.Tag != "" {
		line += fmt.Sprintf(" tag %q", mp.Tag)
	}
	return line
}

// DescribeSessions lists the sessions without their ids.
func (n *Plugin) DescribeSessions() []string {
	var lines []string
	for _, s := range n.Sessions.All {
		line := fmt.Sprintf("%d %s > %s > %s", s.Proto, s.Ext, s.Outside, s.Inside)
		if s.Has(SessionTwice) {
			line += " as " + s.ExtNAT.String()
		}
		if s.Has(sessionBypass) {
			line += " bypass"
		}
		if n.timedOut(s) {
			line += " timed out"
		}
		lines = append(lines, line)
	}
	return lines
}
