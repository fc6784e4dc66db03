// Package rule is the part of planning that all renderers share. It names frontends (Key) and says
// which claim on a frontend wins (Rank) and which addresses no service may claim (Ground). For a
// renderer with one row for all clients of a frontend, a Planner says which of the rules of
// Kubernetes the row follows, which frontends are refused, and what has to be reported.
//
// A frontend is an address, port and protocol. Kubernetes has a rule for each class of its clients:
// a messages.Frontend. A row is the entry in a table of VPP.
//
// It takes values and returns values: no clock, no goroutine, no logger. A Planner belongs to one
// goroutine and to one plan.
package rule

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// IANA protocol numbers that VPP translates by port.
const (
	// TCP is the protocol number of TCP.
	TCP = uint8(messages.Protocol_TCP)
	// UDP is the protocol number of UDP.
	UDP = uint8(messages.Protocol_UDP)
)

// Key identifies a frontend: for one VIP, port and protocol VPP has one treatment, whichever
// renderer programs it.
type Key struct {
	// Addr is the VIP.
	Addr netip.Addr
	// Port is the port of the VIP, 1..65535; 0 = the whole address.
	Port uint16
	// Proto is the IANA protocol number, TCP or UDP; 0 = the whole address.
	Proto uint8
}

// String returns the key as "ip:port/PROTO", the form that plans, messages and metrics show.
func (k Key) String() string {
	return netip.AddrPortFrom(k.Addr, k.Port).String() + "/" + ProtocolName(k.Proto)
}

// Compare orders keys by address, port and protocol.
func (k Key) Compare(other Key) int {
	return cmp.Or(k.Addr.Compare(other.Addr), cmp.Compare(k.Port, other.Port), cmp.Compare(k.Proto, other.Proto))
}

// ErrKey means that a text is not of the form "ip:port/PROTO".
var ErrKey = errors.New("malformed frontend")

// ParseKey is the reverse of Key.String. It accepts TCP, UDP and SCTP by name and every other
// protocol by number.
func ParseKey(text string) (Key, error) {
	endpoint, proto, found := strings.Cut(text, "/")
	if !found {
		return Key{}, fmt.Errorf("parse frontend %q: %w: no protocol", text, ErrKey)
	}
	ap, err := netip.ParseAddrPort(endpoint)
	if err != nil || ap.Addr().Zone() != "" {
		return Key{}, fmt.Errorf("parse frontend %q: %w: bad endpoint", text, ErrKey)
	}
	number, err := protocolNumber(proto)
	if err != nil {
		return Key{}, fmt.Errorf("parse frontend %q: %w: bad protocol", text, ErrKey)
	}
	return Key{Addr: ap.Addr(), Port: ap.Port(), Proto: number}, nil
}

// ProtocolName returns the name that Kubernetes has for a protocol, or its number.
func ProtocolName(proto uint8) string {
	switch messages.Protocol(proto) {
	case messages.Protocol_TCP:
		return "TCP"
	case messages.Protocol_UDP:
		return "UDP"
	case messages.Protocol_SCTP:
		return "SCTP"
	default:
		return strconv.Itoa(int(proto))
	}
}

// protocolNumber is the reverse of protocolName.
func protocolNumber(name string) (uint8, error) {
	switch name {
	case "TCP":
		return TCP, nil
	case "UDP":
		return UDP, nil
	case "SCTP":
		return uint8(messages.Protocol_SCTP), nil
	}
	number, err := strconv.ParseUint(name, 10, 8)
	if err != nil {
		return 0, err
	}
	if ProtocolName(uint8(number)) != name {
		return 0, ErrKey
	}
	return uint8(number), nil
}

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
