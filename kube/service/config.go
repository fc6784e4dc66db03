package service

import "net/netip"

// Config is the part of the agent's configuration that changes what a service means on this node.
// The zero value serves node ports on the primary addresses, recognises no local pods and
// masquerades nothing on cluster IPs. It is read only; the same value may be used by any number of
// goroutines.
type Config struct {
	// NodePortAddresses are the addresses of this node for node ports and health-check node ports.
	// The zero value means the primary address of each family.
	NodePortAddresses NodePortAddresses
	// ClusterCIDRs is the local detector: a packet whose source lies inside comes from a pod of
	// this node. A family without an entry has no detector, so no client of that family is
	// recognised as a pod, and ClusterIP traffic of that family is not masqueraded.
	ClusterCIDRs []netip.Prefix
	// NodesPodNetworks takes the pod networks of the nodes (spec.podCIDRs) instead of ClusterCIDRs.
	NodesPodNetworks bool
	// ServiceCIDRs are the ranges that cluster IPs are allocated from. Packets to an address inside
	// that no service has are dropped. They do not influence Resolve, only the verdicts of Table.
	ServiceCIDRs []netip.Prefix
	// ExternalIPs are the networks of which services may name addresses in spec.externalIPs; nil =
	// all addresses. Others are not served.
	ExternalIPs []netip.Prefix
	// MasqueradeAll masquerades every packet to a cluster IP, from any client.
	MasqueradeAll bool
	// Limits are what services may ask of a node; the zero value limits nothing.
	Limits Limits
	// Costs are the bytes that Limits.Node counts.
	Costs Costs
}
