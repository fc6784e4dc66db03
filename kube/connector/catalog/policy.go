package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The reasons for which an address is refused.
const (
	ReasonNoAddress   Reason = "no-address"  // empty, a host name, or with a zone
	ReasonUnspecified Reason = "unspecified" // 0.0.0.0/8, ::
	ReasonLoopback    Reason = "loopback"    // 127.0.0.0/8, ::1
	// 169.254.0.0/16 with the metadata services of clouds, fe80::/10
	ReasonLinkLocal    Reason = "link-local"
	ReasonMulticast    Reason = "multicast"     // and broadcast
	ReasonServiceRange Reason = "service-range" // a virtual address of the cluster
	ReasonNode         Reason = "node"          // an address of a node
	// Metadata services of clouds, which give out credentials of the nodes.
	ReasonMetadata Reason = "metadata"
	ReasonPod      Reason = "pod"    // in a network of pods
	ReasonDenied   Reason = "denied" // in Policy.Deny
)

// Policy says which addresses instances may have. The zero value refuses addresses that
// EndpointSlices must not have.
type Policy struct {
	// ServiceRanges are the ranges of cluster IPs. An instance in them would make one service an
	// alias of another.
	ServiceRanges []netip.Prefix
	// Nodes are the addresses of the nodes. An instance with such an address would open the
	// listeners of the nodes to all pods.
	Nodes []netip.Addr
	// Pods are the networks of pods. An instance in them would bypass the selector of a Service.
	Pods []netip.Prefix
	// AllowPods admits instances in the networks of pods, for a catalog of pods of this cluster.
	AllowPods bool
	// Deny are further ranges that are refused.
	Deny []netip.Prefix
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
	// metadata are the addresses of clouds' metadata services outside of the link-local networks:
	// AWS, Google, Alibaba, Azure.
	metadata = []netip.Prefix{
		netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::254/128"),
		netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("168.63.129.16/32"),
	}
)

// Clone returns a copy to which the caller may add addresses.
func (p *Policy) Clone() Policy {
	out := *p
	out.ServiceRanges, out.Nodes, out.Pods = slices.Clone(p.ServiceRanges), slices.Clone(p.Nodes), slices.Clone(p.Pods)
	return out
}

// Address returns the canonical address of an instance, or the problem for which it is refused.
func (p *Policy) Address(i Instance) (netip.Addr, *Problem) {
	text := i.Address
	if text == "" {
		text = i.NodeAddress
	}
	refuse := func(reason Reason, message string) (netip.Addr, *Problem) {
		return netip.Addr{}, &Problem{Instance: i.name(), Reason: reason, Message: message}
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return refuse(ReasonNoAddress, fmt.Sprintf("%.80q is no IP address", text))
	}
	address = address.Unmap()
	if reason := p.refuses(address); reason != "" {
		return refuse(reason, fmt.Sprintf("%s is refused: %s", address, reason))
	}
	for _, inner := range embedded(address) {
		if reason := p.refuses(inner); reason != "" {
			return refuse(reason, fmt.Sprintf("%s is refused: it leads to %s: %s", address, inner, reason))
		}
	}
	return address, nil
}

// refuses returns the reason why an address is refused; "" = it is allowed.
func (p *Policy) refuses(a netip.Addr) Reason {
	within := func(ranges []netip.Prefix) bool {
		return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) })
	}
	switch {
	case a.IsUnspecified() || thisNetwork.Contains(a):
		return ReasonUnspecified
	case a.IsLoopback():
		return ReasonLoopback
	case a.IsLinkLocalUnicast():
		return ReasonLinkLocal
	case a.IsMulticast() || a == broadcast:
		return ReasonMulticast
	case within(p.ServiceRanges):
		return ReasonServiceRange
	case slices.Contains(p.Nodes, a):
		return ReasonNode
	case within(metadata):
		return ReasonMetadata
	case !p.AllowPods && within(p.Pods):
		return ReasonPod
	case within(p.Deny):
		return ReasonDenied
	}
	return ""
}

// name returns the name of an instance in problems.
func (i Instance) name() string {
	if i.ID != "" {
		return i.ID
	}
	return i.Address
}

// Prefixes of IPv6 addresses that contain an IPv4 address. For this package an IPv4-mapped address
// is an IPv4 address.
var (
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	// RFC 8215: contains prefixes of any length
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour  = netip.MustParsePrefix("2002::/16") // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32") // RFC 4380
)

// embedded returns the IPv4 addresses that packets to an IPv6 address may reach, through a
// translator or a tunnel.
func embedded(a netip.Addr) []netip.Addr {
	b := a.As16()
	at := func(i, j, k, l int) netip.Addr { return netip.AddrFrom4([4]byte{b[i], b[j], b[k], b[l]}) }
	last := at(12, 13, 14, 15)
	switch {
	case a.Is4():
		return nil
	case compatible.Contains(a), translated.Contains(a), nat64.Contains(a):
		return []netip.Addr{last}
	case localNAT64.Contains(a):
		// The length of the prefix, 48, 56, 64 or 96, decides the place of the IPv4 address. The
		// other places have zeros.
		all := []netip.Addr{at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), last}
		return slices.DeleteFunc(all, thisNetwork.Contains)
	case sixToFour.Contains(a):
		return []netip.Addr{at(2, 3, 4, 5)}
	case teredo.Contains(a): // the server, and the client with its bits inverted
		client := last.As4()
		for i := range client {
			client[i] = ^client[i]
		}
		return []netip.Addr{at(4, 5, 6, 7), netip.AddrFrom4(client)}
	}
	return nil
}

const hashDigits = 5

// Label returns the name of the Service for a name of a source: prefix and name unchanged if they
// are a DNS-1035 label. Otherwise it is in lower case, shortened, and has "-" for other characters.
// It ends with the hash of the name, so that "a_b" and "a.b" stay distinct. The same arguments
// always give the same label. The prefix must be a valid beginning of a label, or empty.
func Label(prefix, name string) string {
	if exact := prefix + name; len(validation.IsDNS1035Label(exact)) == 0 {
		return exact
	}
	base := []byte(strings.ToLower(prefix + name))
	for i, c := range base {
		if !isAlphanumeric(c) {
			base[i] = '-'
		}
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:])[:hashDigits]
	label := strings.TrimLeft(string(base), "-")
	if label == "" || label[0] < 'a' {
		label = "s-" + label
	}
	label = strings.TrimRight(label[:min(len(label), validation.DNS1035LabelMaxLength-hashDigits-1)], "-")
	return label + "-" + hash
}

func isAlphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// Named is a service of a source with the name of its Service in the cluster.
type Named struct {
	// Source is the name of its source.
	Source string
	// Label is the name of the Service.
	Label string
	// Service is the service at the source.
	Service Service
}

// Sourced holds the wanted services of one source.
type Sourced struct {
	// Source is the name of the source.
	Source string
	// Services in any order, each name once.
	Services []Service
}

// Assign gives each service its label. If several services have the same label, the earlier source
// gets it. Within a source the service whose name needed no change gets it, then the smaller name.
// The others become problems. The result is ordered by label and does not depend on the order of
// the services.
func Assign(prefix string, sources []Sourced) ([]Named, []Problem) {
	type candidate struct {
		Named
		rank    int
		changed int // 1 = its label differs from its name
	}
	var all []candidate
	for rank, source := range sources {
		for _, s := range source.Services {
			c := candidate{Named: Named{source.Source, Label(prefix, s.Name), s}, rank: rank}
			if c.Label != prefix+s.Name {
				c.changed = 1
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(
			strings.Compare(a.Label, b.Label), cmp.Compare(a.rank, b.rank), cmp.Compare(a.changed, b.changed), strings.Compare(a.Service.Name, b.Service.Name),
		)
	})
	var out []Named
	var problems []Problem
	for _, c := range all {
		if n := len(out); n > 0 && out[n-1].Label == c.Label {
			first := out[n-1]
			problems = append(problems, Problem{
				Source: c.Source, Service: c.Service.Name, Reason: ReasonCollision,
				Message: fmt.Sprintf("its name %s belongs to %s of %s", c.Label, printable(first.Service.Name), first.Source),
			})
			continue
		}
		out = append(out, c.Named)
	}
	return out, problems
}
