package interfaces

import (
	"fmt"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// summary describes an interface set in one line for the journal.
func summary(set *messages.InterfaceSet) string {
	var frontends, backends, others []string
	for _, i := range set.GetInterfaces() {
		if i.GetFrontend() {
			frontends = append(frontends, i.GetName())
		}
		if i.GetBackend() {
			backends = append(backends, i.GetName())
		}
		if i.GetOtherProtocols() != "" {
			others = append(others, i.GetName())
		}
	}
	text := fmt.Sprintf("%d interfaces; frontends: %s; backends: %s", len(set.GetInterfaces()), shortened(frontends), shortened(backends))
	if len(others) > 0 {
		text += "; packets that are not TCP, UDP or ICMP: " + shortened(others)
	}
	return text
}

// faults says why connections to endpoints behind interfaces are lost; "" = they are not.
func faults(set *messages.InterfaceSet) string {
	var all []string
	for _, i := range set.GetInterfaces() {
		if i.GetFault() != "" {
			all = append(all, "connections to endpoints behind "+i.GetName()+" are lost: "+i.GetFault())
		}
	}
	return strings.Join(all, "; ")
}

// shortened shortens a list for a line of text.
func shortened(names []string) string {
	const most = 12
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		return strings.Join(names[:most], " ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, " ")
}
