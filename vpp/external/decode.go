package external

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Limits of one layer.
const (
	maxPriority  = 1000
	maxEntries   = 8192
	maxExclusion = 256 // addresses of one SNAT exclusion
	maxName      = 63  // VPP's interface names
)

// Decode reads the JSON form of a document of a source. Unknown fields are errors, because a
// misspelt one would change the configuration silently. The error is of type Errors and lists every
// fault of the document. A document that is empty, or null, is a layer without entries.
func Decode(data []byte, source string) (*Layer, error) {
	if text := bytes.TrimSpace(data); len(text) == 0 || string(text) == "null" {
		return &Layer{Source: source, Priority: DefaultPriority(source)}, nil
	}
	var doc Document
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&doc)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one document")
		}
	}
	if err != nil {
		return nil, Errors{formError(err)}
	}
	c := checker{layer: &Layer{Source: source, Priority: DefaultPriority(source)}, seen: map[rule.Key]string{}, inner: map[rule.Key]string{}}
	c.document(&doc)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	c.order()
	return c.layer, nil
}

// formError translates an error of encoding/json into the fields of the document.
func formError(err error) *FieldError {
	var wrong *json.UnmarshalTypeError
	text := strings.TrimPrefix(err.Error(), "json: ")
	switch field, unknown := strings.CutPrefix(text, "unknown field "); {
	case errors.As(err, &wrong):
		return &FieldError{Field: wrong.Field, Message: "is a " + wrong.Value + ", expected " + typeName(wrong.Type.Kind().String())}
	case unknown:
		return &FieldError{Field: cut(strings.Trim(field, `"`)), Message: "is unknown"}
	default:
		return &FieldError{Message: text}
	}
}

// typeName returns the JSON name of a kind of Go.
func typeName(kind string) string {
	words := map[string]string{"struct": "an object", "slice": "a list", "string": "a string", "bool": "true or false", "int": "a whole number"}
	return cmp.Or(words[kind], kind)
}

// checker turns a document into a layer. It goes on after an error, so that the user gets all of
// them at once.
type checker struct {
	layer  *Layer
	errs   Errors
	seen   map[rule.Key]string // mappings by key, with their objects
	inner  map[rule.Key]string // reserved source addresses with their objects, see inside
	object string
}

func (c *checker) fail(field, format string, args ...any) {
	// The errors go into one answer and one log line, so their number is limited.
	const most = 50
	if len(c.errs) < most {
		c.errs = append(c.errs, &FieldError{Object: c.object, Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

func (c *checker) document(doc *Document) {
	for _, head := range []struct{ field, got, want string }{{"apiVersion", doc.APIVersion, APIVersion}, {"kind", doc.Kind, Kind}} {
		if head.got != head.want {
			c.fail(head.field, "%q is not supported: expected %s", cut(head.got), head.want)
		}
	}
	if doc.Priority != nil {
		if c.layer.Priority = *doc.Priority; *doc.Priority < 0 || *doc.Priority > maxPriority {
			c.fail("priority", "%d is not between 0 and %d", *doc.Priority, maxPriority)
		}
	}
	for i := range doc.StaticMappings {
		c.object = fmt.Sprintf("staticMappings[%d] %s", i, cut(doc.StaticMappings[i].External))
		c.static(&doc.StaticMappings[i])
	}
	for i, text := range doc.IdentityMappings {
		c.object = fmt.Sprintf("identityMappings[%d]", i)
		if key, ok := c.key("", text); ok {
			c.add(Mapping{Key: key, Kind: nat44.Identity})
		}
	}
	for i, text := range doc.NATAddresses {
		c.object = fmt.Sprintf("natAddresses[%d]", i)
		if a, ok := c.address("", text); ok && slices.Contains(c.layer.Addresses, a) {
			c.fail("", "%s is there twice", a)
		} else if ok {
			c.layer.Addresses = append(c.layer.Addresses, a)
		}
	}
	for i, text := range doc.SNATExclusions {
		c.object = fmt.Sprintf("snatExclusions[%d]", i)
		c.exclusion(text)
	}
	for i, role := range doc.Interfaces {
		name := role.Name
		if !isInterface(name) {
			name = cut(name)
		}
		c.object = fmt.Sprintf("interfaces[%d] %s", i, name)
		c.role(role)
	}
	if c.object = ""; c.layer.Size() > maxEntries {
		c.fail("", "%d entries are more than %d", c.layer.Size(), maxEntries)
	}
}

// static checks one static mapping.
func (c *checker) static(m *StaticMapping) {
	before := len(c.errs)
	key, _ := c.key("external", m.External)
	out := Mapping{Key: key, Kind: nat44.Static, Masquerade: m.Masquerade}
	if key.Port != 0 {
		out.Kind = nat44.Balanced
	}
	for i, text := range m.To {
		field := fmt.Sprintf("to[%d]", i)
		to, ok := c.backend(field, text, key.Port != 0)
		if ok && slices.Contains(out.To, to) {
			c.fail(field, "%s is there twice", text)
		}
		out.To = append(out.To, to)
	}
	switch {
	case len(m.To) == 0:
		c.fail("to", "is empty: expected a backend")
	case key.Port == 0 && len(m.To) > 1:
		c.fail("to", "has %d backends: a whole address has one", len(m.To))
	case key.Port == 0 && m.Masquerade:
		c.fail("masquerade", "needs a port in external")
	case len(m.To) > nat44.MaxBackends:
		c.fail("to", "has %d backends, the most are %d", len(m.To), nat44.MaxBackends)
	}
	if len(c.errs) == before {
		slices.SortFunc(out.To, netip.AddrPort.Compare)
		c.add(out)
	}
}

// exclusion adds an identity mapping for every address of a network, because VPP has no identity
// mapping of a network.
func (c *checker) exclusion(text string) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		a, ok := c.address("", text)
		if !ok {
			return
		}
		network = netip.PrefixFrom(a, 32)
	}
	if !network.Addr().Is4() || network.Masked() != network {
		c.fail("", "%q is not an IPv4 network, for example 10.1.1.0/24", cut(text))
		return
	}
	if network.Bits() < 24 {
		c.fail("", "%s has more than %d addresses", text, maxExclusion)
		return
	}
	if why := unusable(network.Addr()); why != "" {
		c.fail("", "%s %s", text, why)
		return
	}
	for a := network.Addr(); network.Contains(a); a = a.Next() {
		c.add(Mapping{Key: rule.Key{Addr: a}, Kind: nat44.Identity})
	}
}

// isInterface reports whether a text may be the name of an interface.
func isInterface(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

// role checks the role of one interface.
func (c *checker) role(r InterfaceRole) {
	switch {
	case !isInterface(r.Name):
		c.fail("name", "%q is not the name of an interface", cut(r.Name))
	case r.Name == "local0":
		c.fail("name", "local0 is VPP's own")
	case r.Role != RoleNAT && r.Role != RoleOutput && r.Role != RoleNone:
		c.fail("role", "%q is not one of %s, %s, %s", cut(string(r.Role)), RoleNAT, RoleOutput, RoleNone)
	case slices.ContainsFunc(c.layer.Roles, func(other InterfaceRole) bool { return other.Name == r.Name }):
		c.fail("name", "%s is there twice", r.Name)
	default:
		c.layer.Roles = append(c.layer.Roles, r)
	}
}

// add enters a mapping, unless it contradicts another one of the document.
func (c *checker) add(m Mapping) {
	m.Field = c.object
	if other := c.seen[m.Key]; other != "" {
		c.fail("", "%s is mapped by %s already", text(m.Key), other)
		return
	}
	if at, ok := m.inside(); ok {
		if other := c.inner[at]; other != "" {
			c.fail("", "%s is translated by %s already", text(at), other)
			return
		}
		c.inner[at] = c.object
	}
	c.seen[m.Key] = c.object
	c.layer.Mappings = append(c.layer.Mappings, m)
}

// order sorts the layer, so that equal documents give equal layers.
func (c *checker) order() {
	slices.SortFunc(c.layer.Mappings, func(a, b Mapping) int { return a.Key.Compare(b.Key) })
	slices.SortFunc(c.layer.Addresses, netip.Addr.Compare)
	slices.SortFunc(c.layer.Roles, func(a, b InterfaceRole) int { return strings.Compare(a.Name, b.Name) })
}
