package simulator

import (
	"maps"
	"slices"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

// wantInterfaceEvents subscribes a client, once, or ends its subscription.
func wantInterfaceEvents(c *call, req *interfaces.WantInterfaceEvents) {
	index := none
	if c.client != nil {
		index = c.client.index
	}
	_, subscribed := c.subscribers[index]
	retval := retOK
	switch enable := req.EnableDisable != 0; {
	case subscribed == enable:
		retval = retInvalidRegistration
	case enable:
		c.subscribers[index] = req.PID
	default:
		delete(c.subscribers, index)
	}
	c.reply(&interfaces.WantInterfaceEventsReply{Retval: retval})
}

// unsubscribe ends the subscriptions of a client that is gone.
func (m *model) unsubscribe(client uint32) {
	delete(m.subscribers, client)
}

// publish sends the interface events that the last request caused. Several
// changes of one interface are one event, whose flags tell only what went up.
// mu is held.
func (v *VPP) publish(m *model) {
	if len(m.pending) == 0 {
		return
	}
	clients := slices.Sorted(maps.Keys(m.subscribers))
	for _, index := range slices.Sorted(maps.Keys(m.pending)) {
		change := m.pending[index]
		event := interfaces.SwInterfaceEvent{
			SwIfIndex: interface_types.InterfaceIndex(index),
			Flags:     statusFlags(change.adminUp, change.linkUp),
			Deleted:   change.deleted,
		}
		for _, id := range clients {
			if client := v.clients[id]; client != nil {
				event.PID = m.subscribers[id]
				client.send(&event, id)
			}
		}
	}
	clear(m.pending)
}

// statusFlags encodes interface states.
func statusFlags(adminUp, linkUp bool) interface_types.IfStatusFlags {
	var flags interface_types.IfStatusFlags
	if adminUp {
		flags |= interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	if linkUp {
		flags |= interface_types.IF_STATUS_API_FLAG_LINK_UP
	}
	return flags
}
