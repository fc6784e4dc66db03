package external

import (
	"net/netip"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// key parses the external side of a mapping: "203.0.113.9:443/TCP", or a whole address.
func (c *checker) key(field, text string) (rule.Key, bool) {
	if !strings.Contains(text, "/") {
		a, ok := c.address(field, text)
		return rule.Key{Addr: a}, ok
	}
	key, err := rule.ParseKey(text)
	switch {
	case err != nil || !key.Addr.Is4() || key.Port == 0 || key.Proto != rule.TCP && key.Proto != rule.UDP:
		c.fail(field, "%q is neither an IPv4 address nor one with port and protocol, for example 203.0.113.9:443/TCP", cut(text))
	case unusable(key.Addr) != "":
		c.fail(field, "%s %s", text, unusable(key.Addr))
	default:
		return key, true
	}
	return rule.Key{}, false
}

// backend parses the backend of a mapping.
func (c *checker) backend(field, text string, port bool) (netip.AddrPort, bool) {
	if !port {
		a, ok := c.address(field, text)
		return netip.AddrPortFrom(a, 0), ok
	}
	to, err := netip.ParseAddrPort(text)
	switch {
	case err != nil || !to.Addr().Is4() || to.Port() == 0:
		c.fail(field, "%q is not an IPv4 address with a port, for example 10.1.1.3:8080", cut(text))
	case unusable(to.Addr()) != "":
		c.fail(field, "%s %s", text, unusable(to.Addr()))
	case nat44.Reserved(to):
		c.fail(field, "%s is reserved", text)
	default:
		return to, true
	}
	return netip.AddrPort{}, false
}

// address parses an IPv4 address.
func (c *checker) address(field, text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil || !a.Is4():
		c.fail(field, "%q is not an IPv4 address", cut(text))
	case unusable(a) != "":
		c.fail(field, "%s %s", text, unusable(a))
	default:
		return a, true
	}
	return netip.Addr{}, false
}

// unusable returns why an address can be neither side of a mapping; "" = it can.
func unusable(a netip.Addr) string {
	switch {
	case a.IsUnspecified():
		return "means no address"
	case a.IsLoopback():
		return "is a loopback address"
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is not the address of one host"
	}
	return ""
}

// text returns a key in the form of documents.
func text(k rule.Key) string {
	if k.Port == 0 {
		return k.Addr.String()
	}
	return k.String()
}

// inside returns the source address that a mapping reserves: the backend of a whole address, which
// VPP translates on the way out, or the address of an identity mapping. Two mappings with the same
// one conflict.
func (m *Mapping) inside() (rule.Key, bool) {
	switch m.Kind {
	case nat44.Static:
		return rule.Key{Addr: m.To[0].Addr()}, true
	case nat44.Identity:
		return m.Key, true
	default:
		return rule.Key{}, false
	}
}
