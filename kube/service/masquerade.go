package service

// rowPolicy names the rule about source addresses that applies to a row.
type rowPolicy uint8

const (
	// policyInternal is a cluster IP.
	policyInternal rowPolicy = iota
	// policyExternalCluster is an external frontend with the Cluster policy, or without any
	// endpoint.
	policyExternalCluster
	// policyExternalLocalRemote is an external frontend with the Local policy, for remote clients,
	// whose address must be kept.
	policyExternalLocalRemote
	// policyExternalLocalLocal is the same frontend for clients on this node, which reach all
	// endpoints of the cluster.
	policyExternalLocalLocal
)

// masqueradeFrom returns the client classes whose source address a forwarding row replaces. A
// cluster IP masquerades every client that the detector does not recognise as a pod of this node;
// without a detector it masquerades no client. An external frontend with the Cluster policy
// masquerades every client, so that answers come back here. With the Local policy the address of a
// remote client is never changed. Clients on this node are masqueraded only if they are host
// processes, because their endpoint may be on any node. Answers to a pod find their way back
// without it.
func masqueradeFrom(policy rowPolicy, detector, masqueradeAll bool) []string {
	switch policy {
	case policyInternal:
		if masqueradeAll {
			return []string{ClassPod, ClassNode, ClassRemote}
		}
		if detector {
			return []string{ClassNode, ClassRemote}
		}
		return nil
	case policyExternalCluster:
		return []string{ClassPod, ClassNode, ClassRemote}
	case policyExternalLocalLocal:
		return []string{ClassNode}
	default:
		return nil
	}
}
