package rule

import "github.com/troupe-vpp/troupe/messages"

// Rank orders claims on the same frontend: the lowest rank wins, whatever the age of the services.
// Addresses and ports that Kubernetes allocates come before addresses that a service names.
type Rank uint8

// The ranks.
const (
	// OfClusterIP is the address that Kubernetes has given to the service.
	OfClusterIP Rank = iota
	// OfNodePort is the port that Kubernetes has given to the service.
	OfNodePort
	// OfLoadBalancer is an address that a controller of the cluster has given to the service.
	OfLoadBalancer
	// OfIdleLoadBalancer is the same without endpoints: it gives way to another service that a
	// controller has given the address to, as in kube-proxy.
	OfIdleLoadBalancer
	// OfExternalIP is an address that the author of the service has chosen.
	OfExternalIP
	// OfExternalConfiguration belongs to external configuration, not to a service.
	OfExternalConfiguration
)

// RankOf is the rank of the claim that a service has on a frontend.
func RankOf(f *messages.Frontend) Rank {
	switch f.GetKind() {
	case messages.FrontendKind_KIND_CLUSTER_IP:
		return OfClusterIP
	case messages.FrontendKind_KIND_NODE_PORT:
		return OfNodePort
	case messages.FrontendKind_KIND_LOAD_BALANCER_IP:
		if f.GetAction() == messages.Action_ACTION_REJECT {
			return OfIdleLoadBalancer
		}
		return OfLoadBalancer
	default:
		return OfExternalIP
	}
}
