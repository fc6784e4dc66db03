package simulator

import (
	"maps"
	"slices"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/handlers"
	"github.com/troupe-vpp/troupe/vpp/simulator/model"
)

// publish sends the interface events that the last request caused. Several changes of one interface
// are one event, whose flags show only what went up. mu is held.
func (v *VPP) publish(m *model.Model) {
	if len(m.Pending) == 0 {
		return
	}
	clients := slices.Sorted(maps.Keys(m.Subscribers))
	for _, index := range slices.Sorted(maps.Keys(m.Pending)) {
		change := m.Pending[index]
		event := interfaces.SwInterfaceEvent{
			SwIfIndex: interface_types.InterfaceIndex(index),
			Flags:     handlers.StatusFlags(change.AdminUp, change.LinkUp),
			Deleted:   change.Deleted,
		}
		for _, id := range clients {
			if client := v.clients[id]; client != nil {
				event.PID = m.Subscribers[id]
				client.send(&event, id)
			}
		}
	}
	clear(m.Pending)
}
