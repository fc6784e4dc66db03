package cnat

import "fmt"

// Describe lists the configuration.
func (p *Plugin) Describe(nameOf func(uint32) string) []string {
	var lines []string
	for id, t := range p.Translations.All {
		lines = append(lines, fmt.Sprintf("translation %d: %s port %d proto %d lb %d real %d flags %d hash %d",
			id, t.VIP.Addr, t.VIP.Port, t.Proto, t.LBType, t.RealIP, t.Flags, t.Hash))
		for i, path := range t.Paths {
			lines = append(lines, fmt.Sprintf("translation %d path %d: %s port %d flags %d", id, i, path.Dst.Addr, path.Dst.Port, path.Flags))
		}
	}
	s := &p.SNAT
	if s.Policy != 0 || !s.IP4.IsUnspecified() || !s.IP6.IsUnspecified() {
		lines = append(lines, fmt.Sprintf("snat policy %d addresses %s %s", s.Policy, s.IP4, s.IP6))
	}
	for i := range s.Interfaces {
		lines = append(lines, fmt.Sprintf("snat table %d: %s", i.Table, nameOf(i.SwIf)))
	}
	for prefix := range s.Excluded {
		lines = append(lines, fmt.Sprintf("snat excludes %s", prefix))
	}
	return lines
}
