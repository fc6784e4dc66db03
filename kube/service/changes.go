package service

import (
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// Changed returns the frontends ("ip:port/PROTO") that are treated differently by two sets of rows,
// ordered: those that exist in one of them only, and those whose rows differ in what a client could
// notice. Everything else needs no write, in no dataplane. Either argument may be the rows of one
// view or of many; the order of rows does not matter.
func Changed(previous, current []*messages.Frontend) []string {
	before, after := byFrontend(previous), byFrontend(current)
	var changed []string
	for text, rows := range after {
		if !slices.EqualFunc(before[text], rows, sameTreatment) {
			changed = append(changed, text)
		}
	}
	for text := range before {
		if _, still := after[text]; !still {
			changed = append(changed, text)
		}
	}
	slices.Sort(changed)
	return changed
}

// byFrontend groups rows by their frontend, each group ordered by the client class.
func byFrontend(rows []*messages.Frontend) map[string][]*messages.Frontend {
	groups := make(map[string][]*messages.Frontend, len(rows))
	for _, row := range rows {
		text := FrontendText(row)
		groups[text] = append(groups[text], row)
	}
	for _, group := range groups {
		slices.SortStableFunc(group, func(a, b *messages.Frontend) int { return int(a.GetFrom()) - int(b.GetFrom()) })
	}
	return groups
}

// sameTreatment reports whether no client can tell two rows of one frontend apart. The name of the
// port, the field that made the row and the node of a backend are not visible from outside.
func sameTreatment(a, b *messages.Frontend) bool {
	return a.GetFrom() == b.GetFrom() &&
		a.GetAction() == b.GetAction() &&
		a.GetAffinitySeconds() == b.GetAffinitySeconds() &&
		a.GetMaglev() == b.GetMaglev() &&
		slices.EqualFunc(a.GetBackends(), b.GetBackends(), func(x, y *messages.Backend) bool {
			return x.GetAddress() == y.GetAddress() && x.GetPort() == y.GetPort()
		}) &&
		slices.Equal(a.GetMasqueradeFrom(), b.GetMasqueradeFrom()) &&
		slices.Equal(a.GetAllowSources(), b.GetAllowSources())
}
