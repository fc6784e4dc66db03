package external

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// APIVersion and Kind are the required values of these fields of a document.
const (
	APIVersion = "troupe.dev/v1alpha1"
	Kind       = "ExternalConfiguration"
)

// Document is one layer as the user writes it.
type Document struct {
	// APIVersion is always troupe.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is always ExternalConfiguration.
	Kind string `json:"kind"`
	// Priority of the layer, 0 to 1000; the larger one wins. Unset = the default of its source,
	// see DefaultPriority.
	Priority *int `json:"priority,omitempty"`
	// StaticMappings map an address, or a port of it, to backends.
	StaticMappings []StaticMapping `json:"staticMappings,omitempty"`
	// IdentityMappings are addresses or ports that NAT does not translate: "192.168.16.1" or
	// "192.168.16.1:4789/UDP".
	IdentityMappings []string `json:"identityMappings,omitempty"`
	// NATAddresses are the IPv4 source addresses of packets that leave through output
	// interfaces (SNAT pool).
	NATAddresses []string `json:"natAddresses,omitempty"`
	// Interfaces get a role that differs from the one that services need.
	Interfaces []InterfaceRole `json:"interfaces,omitempty"`
	// SNATExclusions are networks, or addresses, of clients that keep their source address:
	// each address gets an identity mapping. At most 256 addresses each.
	SNATExclusions []string `json:"snatExclusions,omitempty"`
}

// StaticMapping is one external address, or one port of it.
type StaticMapping struct {
	// External is "203.0.113.9:443/TCP", "…/UDP", or "203.0.113.9" for the whole address.
	External string `json:"external"`
	// To are the backends: "10.1.1.3:8443", at most 253; a whole address has exactly one,
	// "10.1.1.3", whose own connections then have the external address as their source.
	To []string `json:"to"`
	// Masquerade replaces the address of every client by the NAT loopback. Otherwise only the
	// address of a backend that connects to itself is replaced.
	Masquerade bool `json:"masquerade,omitempty"`
}

// InterfaceRole is the role of one interface in NAT.
type InterfaceRole struct {
	// Name of the interface in VPP.
	Name string `json:"name"`
	// Role is one of the words of Role.
	Role Role `json:"role"`
}

// Role is the role of an interface in NAT.
type Role string

// The roles.
const (
	// RoleNAT is inside and outside, the role of interfaces with clients or backends of
	// services.
	RoleNAT Role = "nat"
	// RoleOutput is post-routing SNAT: packets leave through the interface with an address of
	// the pool. Services work through it as through RoleNAT.
	RoleOutput Role = "output"
	// RoleNone excludes an interface from NAT. It is refused where a service needs the
	// interface.
	RoleNone Role = "none"
)

// Mapping is a valid mapping.
type Mapping struct {
	// Key is the external side; port and protocol are 0 for a whole address.
	Key rule.Key
	// Kind is the kind of mapping in VPP.
	Kind nat44.Kind
	// To are the backends, ordered; an identity mapping has none.
	To []netip.AddrPort
	// Masquerade replaces the address of every client.
	Masquerade bool
	// Field is its position in the document, for errors.
	Field string
}

// Layer is a valid document. It is immutable.
type Layer struct {
	// Source names the layer: "file", "etcd:NAME", or the name given by the client of the
	// control socket.
	Source string
	// Priority decides between layers that have the same entry: the larger one wins, then the
	// smaller source.
	Priority int
	// Mappings are ordered by key, which is unique.
	Mappings []Mapping
	// Addresses are the NAT addresses, ordered.
	Addresses []netip.Addr
	// Roles are ordered by interface, which is unique.
	Roles []InterfaceRole
}

// Size is the number of entries.
func (l *Layer) Size() int {
	if l == nil {
		return 0
	}
	return len(l.Mappings) + len(l.Addresses) + len(l.Roles)
}

// ErrInvalid is wrapped by every error of Decode.
var ErrInvalid = errors.New("invalid external configuration")

// FieldError is one fault in a document.
type FieldError struct {
	// Object names the entry: "staticMappings[2] 203.0.113.9:443/TCP"; "" = the document.
	Object string
	// Field is the field of the object, as written in the document; "" = the whole object.
	Field string
	// Message describes the fault.
	Message string
}

// Error returns object, field and message in one line.
func (e *FieldError) Error() string {
	text := e.Message
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if e.Object != "" {
		text = e.Object + ": " + text
	}
	return text
}

// Errors are all faults of one document. It wraps ErrInvalid.
type Errors []*FieldError

// Error returns all of them in one line.
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, one := range e {
		texts[i] = one.Error()
	}
	return fmt.Sprintf("%s: %s", ErrInvalid, strings.Join(texts, "; "))
}

// Unwrap returns ErrInvalid.
func (Errors) Unwrap() error { return ErrInvalid }

// cut returns what an error quotes of a value or of the name of a field. Errors go into logs,
// Events and archives, and the document may contain secrets. Only a short field name, address or
// port is quoted whole.
func cut(value string) string {
	const whole, begin = 24, 4
	if len(value) <= begin {
		return value
	}
	isWord := !strings.ContainsFunc(value, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') })
	isAddress := strings.Trim(value, "0123456789abcdefABCDEF.:/TPUSM[]") == ""
	if len(value) <= whole && (isWord || isAddress) {
		return value
	}
	return strings.ToValidUTF8(value[:begin], "") + "…"
}
