package nat44

import (
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// noteAnother works out whether another client of VPP has set up NAT44 in a way with which services
// cannot be served.
func (a *adapter) noteAnother() {
	want := a.settingsWanted()
	another := a.have.Another(want)
	a.stays = a.have.Keeps(want)
	if another == a.another {
		return
	}
	a.another, a.settings = another, false
	a.claims.Touch(slices.Collect(a.claims.Keys())...)
	for service := range a.plans {
		a.claims.Concern(service)
	}
}

// barred is why most services cannot be served in this VPP; "" = they can.
func (a *adapter) barred() string {
	if a.another != "" {
		return a.another
	}
	n, first := 0, (*messages.Interface)(nil)
	for _, i := range a.set.GetInterfaces() {
		if i.GetOwnAddress() != "" {
			if n++; first == nil {
				first = i
			}
		}
	}
	if n == 0 {
		return ""
	}
	const text = "NAT44 cannot serve the pods behind %d interfaces: VPP itself has their addresses in their tables, " +
		"first %s behind %s; set renderer: auto or cnat and restart the agent"
	return fmt.Sprintf(text, n, first.GetOwnAddress(), first.GetName())
}
