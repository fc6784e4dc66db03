package service

import "github.com/troupe-vpp/troupe/messages"

// Client classes of ServiceView rows (Frontend.masquerade_from). The class of a client decides
// whether its source address is replaced.
const (
	// ClassPod is a client whose source address lies in the cluster CIDRs: a pod of this node.
	ClassPod = "pod"
	// ClassNode is a client that sends from an address of this node: a process on the host.
	ClassNode = "node"
	// ClassRemote is every other client.
	ClassRemote = "remote"
)

// Reasons for a service without frontends (ServiceView.not_served).
const (
	// NotServedNoService means that there is no Service object, only slices or nothing.
	NotServedNoService = "no Service"
	// NotServedHeadless means spec.clusterIP None: clients resolve the endpoints by DNS.
	NotServedHeadless = "headless"
	// NotServedExternalName means a DNS alias, which has no packets to serve.
	NotServedExternalName = "ExternalName"
	// NotServedForeignProxy means the label service.kubernetes.io/service-proxy-name.
	NotServedForeignProxy = "served by another proxy"
	// NotServedNoClusterIP means that no usable cluster IP is allocated (yet).
	NotServedNoClusterIP = "no cluster IP"
)

// unknownWord stands for an enum value that this version does not know.
const unknownWord = "unknown"

// ScopeWord returns the word of the public interface for a scope: cluster, external or nodeport.
func ScopeWord(scope messages.Scope) string {
	switch scope {
	case messages.Scope_SCOPE_CLUSTER:
		return "cluster"
	case messages.Scope_SCOPE_EXTERNAL:
		return "external"
	case messages.Scope_SCOPE_NODEPORT:
		return "nodeport"
	default:
		return unknownWord
	}
}

// KindWord returns the word of the public interface for the field that made a frontend: clusterIP,
// externalIP, loadBalancerIP or nodePort.
func KindWord(kind messages.FrontendKind) string {
	switch kind {
	case messages.FrontendKind_KIND_CLUSTER_IP:
		return "clusterIP"
	case messages.FrontendKind_KIND_EXTERNAL_IP:
		return "externalIP"
	case messages.FrontendKind_KIND_LOAD_BALANCER_IP:
		return "loadBalancerIP"
	case messages.FrontendKind_KIND_NODE_PORT:
		return "nodePort"
	default:
		return unknownWord
	}
}

// FromWord returns the word of the public interface for the clients of a row: any, local or remote.
func FromWord(from messages.ClientClass) string {
	switch from {
	case messages.ClientClass_FROM_ANY:
		return "any"
	case messages.ClientClass_FROM_LOCAL:
		return "local"
	case messages.ClientClass_FROM_REMOTE:
		return "remote"
	default:
		return unknownWord
	}
}

// ActionWord returns the word of the public interface for an action: forward, reject or drop.
func ActionWord(action messages.Action) string {
	switch action {
	case messages.Action_ACTION_FORWARD:
		return "forward"
	case messages.Action_ACTION_REJECT:
		return "reject"
	case messages.Action_ACTION_DROP:
		return "drop"
	default:
		return unknownWord
	}
}

// ProtocolWord returns the name of a transport protocol as Kubernetes writes it: TCP, UDP or SCTP.
func ProtocolWord(protocol messages.Protocol) string {
	switch protocol {
	case messages.Protocol_TCP:
		return "TCP"
	case messages.Protocol_UDP:
		return "UDP"
	case messages.Protocol_SCTP:
		return "SCTP"
	default:
		return unknownWord
	}
}

// ParseProtocol is the inverse of ProtocolWord. An unknown word gives PROTOCOL_UNSPECIFIED.
func ParseProtocol(word string) messages.Protocol {
	switch word {
	case "TCP":
		return messages.Protocol_TCP
	case "UDP":
		return messages.Protocol_UDP
	case "SCTP":
		return messages.Protocol_SCTP
	default:
		return messages.Protocol_PROTOCOL_UNSPECIFIED
	}
}
