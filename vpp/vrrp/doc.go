// Package vrrp makes VPP answer for addresses by its plugin vrrp (RFC 5798, API vrrp 1.1.1). The
// plugin answers ARP and neighbour solicitations while it owns a virtual router, and elects the
// owner with the VPPs of other nodes, without the agent. NAT44 and CNAT serve what arrives.
//
//	Diff      what VPP holds, what it should hold -> the least operations
//	Messages  one operation -> binary API messages
//	Read      VPP -> Held           (needs a link.Caller)
//	Apply     operations -> VPP     (needs a link.Caller)
//
// Everything except Read and Apply takes values and returns values. There is nothing to shut down.
//
// # Properties of VPP that determine the code (25.10, 26.06)
//
//   - A virtual router has no tag. vpp/owned records which ones the agent has made; others
//     stay.
//   - vrrp_vr_update stops and starts a router whose priority, interval or addresses change:
//     another node takes over and gives back, which ends connections twice. Diff replaces a
//     router only where something differs, and the agent gives routers fixed addresses.
//   - Deleting a running router leaves its virtual MAC address and its features on the
//     interface and tells no other node, so it is stopped first: stopping the owner advertises
//     priority 0, and the next node takes over at once. vrrp_vr_del by index forgets to take
//     the router from its interface; vrrp_vr_add_del does not.
//   - Peers of a unicast router can be set only while it is stopped, so the agent uses
//     multicast.
//   - A router answers for its addresses only on its interface. An address may be in one
//     router of an interface and family.
//   - VPP builds an advertisement in a buffer that has room for about 120 addresses of IPv6,
//     without a check (Check refuses more than 90, which fit into a packet).
//   - Accept mode is off: VPP itself does not take packets to the addresses. NAT44 and CNAT
//     look at them before VPP asks whether an address is its own.
package vrrp
