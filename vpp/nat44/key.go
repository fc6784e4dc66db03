package nat44

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// IANA protocol numbers that NAT44-ED translates by port.
const (
	// TCP is the protocol number of TCP.
	TCP = uint8(messages.Protocol_TCP)
	// UDP is the protocol number of UDP.
	UDP = uint8(messages.Protocol_UDP)
)

// Key identifies a row in VPP: the same VIP, port and protocol cannot exist twice, whatever the kind of mapping.
type Key struct {
	// Addr is the VIP (external_addr), an IPv4 address.
	Addr netip.Addr
	// Port is the port of the VIP (external_port), 1..65535.
	Port uint16
	// Proto is the IANA protocol number, TCP or UDP.
	Proto uint8
}

// String returns the key as "ip:port/PROTO", the form that plans, messages and metrics show.
func (k Key) String() string {
	return netip.AddrPortFrom(k.Addr, k.Port).String() + "/" + protocolName(k.Proto)
}

// Compare orders keys by address, port and protocol.
func (k Key) Compare(other Key) int {
	return cmp.Or(k.Addr.Compare(other.Addr), cmp.Compare(k.Port, other.Port), cmp.Compare(k.Proto, other.Proto))
}

// ParseKey is the reverse of Key.String. It knows TCP, UDP and SCTP by name and every other protocol by number.
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

// protocolName returns the name that Kubernetes has for a protocol, or its number.
func protocolName(proto uint8) string {
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
	if protocolName(uint8(number)) != name {
		return 0, ErrKey
	}
	return uint8(number), nil
}
