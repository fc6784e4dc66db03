package service

import (
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// Changed returns, in order, the frontends ("ip:port/PROTO") that two sets of rows treat
// differently. Such a frontend exists in one set only, or its rows differ in something that a
// client could notice. Other frontends need no write in any dataplane. Either argument may be the
// rows of one view or of many; the order of rows does not matter.
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

// sameTreatment reports whether two rows of one frontend look the same to every client. Clients
// cannot see the name of the port, the field that made the row, or the node of a backend.
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
