package service

import "net/netip"

// Config is the part of the agent's configuration that changes what a service means on this node.
// The zero value serves node ports on the primary addresses, recognises no local pods and
// masquerades nothing on cluster IPs. A Config is read only, so any number of goroutines may share
// it.
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
	// ServiceCIDRs are the ranges from which Kubernetes allocates cluster IPs. Table drops packets
	// to an address in these ranges that no service has. Resolve does not use them.
	ServiceCIDRs []netip.Prefix
	// ExternalIPs are the networks whose addresses services may name in spec.externalIPs; nil
	// allows all addresses. An address outside of them is not served.
	ExternalIPs []netip.Prefix
	// MasqueradeAll masquerades every packet to a cluster IP, from any client.
	MasqueradeAll bool
	// Limits bound the size of a service and of all services of the node; the zero value limits
	// nothing.
	Limits Limits
	// Costs are the sizes in bytes by which Limits.Node is counted.
	Costs Costs
}
