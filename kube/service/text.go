package service

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// FrontendText returns "ip:port/PROTO" of a row, IPv6 in brackets: the name of a frontend
// everywhere in the public interface.
func FrontendText(f *messages.Frontend) string {
	text := appendAddressPort(make([]byte, 0, 56), f.GetAddress(), f.GetPort())
	text = append(text, '/')
	return string(append(text, ProtocolWord(f.GetProtocol())...))
}

// BackendText returns "ip:port" of a backend, IPv6 in brackets.
func BackendText(b *messages.Backend) string { return AddressPortText(b.GetAddress(), b.GetPort()) }

// AddressPortText returns "ip:port", IPv6 in brackets. The address is copied unchanged.
func AddressPortText(address string, port uint32) string {
	return string(appendAddressPort(make([]byte, 0, 48), address, port))
}

// appendAddressPort appends "ip:port" to the buffer, IPv6 in brackets.
func appendAddressPort(buffer []byte, address string, port uint32) []byte {
	if strings.IndexByte(address, ':') >= 0 {
		buffer = append(buffer, '[')
		buffer = append(buffer, address...)
		buffer = append(buffer, ']')
	} else {
		buffer = append(buffer, address...)
	}
	buffer = append(buffer, ':')
	return strconv.AppendUint(buffer, uint64(port), 10)
}

// ParseFrontendText reads a text of FrontendText. The error is an ErrFrontendText that names the
// text.
func ParseFrontendText(text string) (netip.AddrPort, messages.Protocol, error) {
	where, word, found := strings.Cut(text, "/")
	protocol := ParseProtocol(word)
	if !found || protocol == messages.Protocol_PROTOCOL_UNSPECIFIED {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: %q: want ip:port/TCP, /UDP or /SCTP", ErrFrontendText, text)
	}
	addrPort, err := netip.ParseAddrPort(where)
	if err != nil {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: %q: %w", ErrFrontendText, text, err)
	}
	return netip.AddrPortFrom(addrPort.Addr().Unmap(), addrPort.Port()), protocol, nil
}

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

// problemSource is the source of the problems found here. Problems of the input keep their source.
const problemSource = "kubernetes"

// report adds a problem with a field of the Service to the view.
func (r *resolver) report(field, message string) {
	r.view.Errors = append(r.view.Errors, &messages.ObjectError{
		Source: problemSource, Kind: "Service", Object: r.in.GetKey(), Field: field, Message: message,
	})
}

// badEndpoints adds one problem for all unusable addresses of a slice. It names the smallest one,
// so that the text does not depend on their order.
func (r *resolver) badEndpoints(slice *messages.EndpointSlice, unusable []string) {
	r.view.Errors = append(r.view.Errors, &messages.ObjectError{
		Source: problemSource, Kind: "EndpointSlice", Object: slice.GetNamespace() + "/" + slice.GetName(), Field: "endpoints.addresses",
		Message: fmt.Sprintf("%d unusable for family %s, for example %q", len(unusable), slice.GetFamily(), slices.Min(unusable)),
	})
}

// sortErrors puts problems into an order that does not depend on the order of the input.
func sortErrors(problems []*messages.ObjectError) {
	slices.SortFunc(problems, func(a, b *messages.ObjectError) int {
		return cmp.Or(
			cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetObject(), b.GetObject()),
			cmp.Compare(a.GetField(), b.GetField()),
			cmp.Compare(a.GetMessage(), b.GetMessage()),
			cmp.Compare(a.GetSource(), b.GetSource()),
		)
	})
}

var (
	// ErrNodePortAddresses means that the value is not allowed for the node-port addresses. Allowed
	// are an empty list, "all" alone, and a list of "primary" and CIDRs.
	ErrNodePortAddresses = errors.New("invalid node port addresses")
	// ErrFrontendText means a text that is not "ip:port/PROTO".
	ErrFrontendText = errors.New("invalid frontend")
)
