package service

import (
	"fmt"
	"net/netip"
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
