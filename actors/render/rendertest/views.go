package rendertest

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/messages"
)

// Forwarding is a service with a TCP frontend on port 80 of each address and one backend.
//
// Each frontend has an endpoint of its own: VPP keeps the row of a deleted frontend if others have
// the same endpoint.
func Forwarding(key string, created int64, addresses ...string) *messages.ServiceView {
	v := &messages.ServiceView{Key: key, Created: created}
	for _, a := range addresses {
		octets := netip.MustParseAddr(a).AsSlice()
		port := uint32(octets[len(octets)-2])<<8 | uint32(octets[len(octets)-1])
		v.Frontends = append(v.Frontends, &messages.Frontend{
			Address: a, Port: 80, Protocol: messages.Protocol_TCP, Action: messages.Action_ACTION_FORWARD,
			Backends: []*messages.Backend{{Address: "10.1.1.2", Port: 1 + port%65535, Local: true}},
		})
	}
	return v
}

// Rejecting is a service without endpoints, with a cluster IP for each address.
func Rejecting(key string, created int64, addresses ...string) *messages.ServiceView {
	v := &messages.ServiceView{Key: key, Created: created}
	for _, a := range addresses {
		v.Frontends = append(v.Frontends, &messages.Frontend{
			Address: a, Port: 80, Protocol: messages.Protocol_TCP, Action: messages.Action_ACTION_REJECT, Scope: messages.Scope_SCOPE_CLUSTER,
		})
	}
	return v
}
