package service

// rowPolicy is which rule about the source address a row falls under.
type rowPolicy uint8

const (
	// policyInternal is a cluster IP.
	policyInternal rowPolicy = iota
	// policyExternalCluster is an external frontend whose policy is Cluster, and one without any
	// endpoint.
	policyExternalCluster
	// policyExternalLocalRemote is an external frontend with the Local policy, for clients
	// elsewhere: their address must be kept.
	policyExternalLocalRemote
	// policyExternalLocalLocal is the same frontend for clients on this node, which reach all
	// endpoints of the cluster.
	policyExternalLocalLocal
)

// masqueradeFrom returns the client classes whose source address a forwarding row replaces. A
// cluster IP masquerades every client that is not recognised as a pod of this node, which takes a
// detector. An external frontend with the Cluster policy masquerades every client, so that answers
// come back here. With the Local policy the address of a remote client is never touched, and of the
// clients on this node only processes of the host are masqueraded: their endpoint may be on any
// node, while a pod's answer finds its way back by itself.
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
