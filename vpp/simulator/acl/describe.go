package acl

import "fmt"

// Describe lists the ACLs with their rules.
func (a *Plugin) Describe(nameOf func(uint32) string) []string {
	var lines []string
	for index, l := range a.All.All {
		lines = append(lines, fmt.Sprintf("%3d %q %d rules", index, l.Tag, len(l.Rules)))
		for i, r := range l.Rules {
			action := [...]string{"deny", "permit", "permit+reflect"}[min(int(r.Action), int(Reflect))]
			lines = append(lines, fmt.Sprintf("%3d rule %5d %s %s > %s proto %d ports %d-%d > %d-%d", index, i, action, r.Src, r.Dst, r.Proto,
				r.SrcPort[0], r.SrcPort[1], r.DstPort[0], r.DstPort[1]))
		}
	}
	for swIf, l := range a.lists {
		lines = append(lines, fmt.Sprintf("on %s input %v output %v", nameOf(swIf), l.In, l.Out))
	}
	return lines
}
