package service

import (
	"fmt"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

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

// Word returns the word of the public interface for an enum value: the part of its name behind the
// first underscore, for example "forward" for ACTION_FORWARD.
func Word(value fmt.Stringer) string {
	_, name, known := strings.Cut(value.String(), "_")
	if !known {
		return unknownWord
	}
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// KindWord returns the word of the public interface for the field that made a frontend: clusterIP,
// externalIP, loadBalancerIP or nodePort.
func KindWord(kind messages.FrontendKind) string {
	words := []string{"clusterIP", "externalIP", "loadBalancerIP", "nodePort"}
	if int(kind) < len(words) {
		return words[kind]
	}
	return unknownWord
}

// ProtocolWord returns the name of a transport protocol as Kubernetes writes it: TCP, UDP or SCTP.
func ProtocolWord(protocol messages.Protocol) string {
	if name, known := messages.Protocol_name[int32(protocol)]; known && protocol != messages.Protocol_PROTOCOL_UNSPECIFIED {
		return name
	}
	return unknownWord
}

// ParseProtocol is the inverse of ProtocolWord. An unknown word gives PROTOCOL_UNSPECIFIED.
func ParseProtocol(word string) messages.Protocol {
	return messages.Protocol(messages.Protocol_value[word])
}
