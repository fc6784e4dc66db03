package addresses

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// ErrPool wraps every error of a pool.
var ErrPool = errors.New("invalid address pool")

// Range is a range of addresses of one family.
type Range struct {
	// First and Last belong to the range.
	First, Last netip.Addr
}

// ParseRange parses a network ("192.0.2.0/28") or two addresses ("192.0.2.1-192.0.2.9").
func ParseRange(text string) (Range, error) {
	first, last, two := strings.Cut(text, "-")
	if !two {
		p, err := netip.ParsePrefix(text)
		if err != nil || p != p.Masked() {
			return Range{}, fmt.Errorf("%w: %q is no network such as 192.0.2.0/28 and no range such as 192.0.2.1-192.0.2.9", ErrPool, text)
		}
		return ofPrefix(p), nil
	}
	a, errA := netip.ParseAddr(strings.TrimSpace(first))
	b, errB := netip.ParseAddr(strings.TrimSpace(last))
	if errA != nil || errB != nil || a.Is4() != b.Is4() || a.Zone()+b.Zone() != "" || b.Less(a) {
		return Range{}, fmt.Errorf("%w: %q is no range of addresses of one family", ErrPool, text)
	}
	return Range{a, b}, nil
}

// ofPrefix is the range of a network.
func ofPrefix(p netip.Prefix) Range {
	last := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(last)*8; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last)
	return Range{p.Addr(), end}
}

// String is "FIRST-LAST".
func (r Range) String() string { return r.First.String() + "-" + r.Last.String() }

// contains reports whether an address is in the range.
func (r Range) contains(a netip.Addr) bool {
	return a.Is4() == r.First.Is4() && !a.Less(r.First) && !r.Last.Less(a)
}

// overlaps reports whether two ranges have a common address.
func (r Range) overlaps(o Range) bool {
	return r.First.Is4() == o.First.Is4() && !r.Last.Less(o.First) && !o.Last.Less(r.First)
}

// size is the number of addresses, at most math.MaxUint64.
func (r Range) size() uint64 {
	n := new(big.Int).Sub(new(big.Int).SetBytes(r.Last.AsSlice()), new(big.Int).SetBytes(r.First.AsSlice()))
	if n.Add(n, big.NewInt(1)); !n.IsUint64() {
		return math.MaxUint64
	}
	return n.Uint64()
}

// Pool has addresses for Services.
type Pool struct {
	// Name is unique.
	Name string
	// Ranges do not overlap.
	Ranges []Range
	// Avoid are the last bytes of IPv4 addresses that are not given, such as 0 and 255, which some
	// networks filter.
	Avoid []byte
	// OnRequest gives addresses only to Services that name the pool or one of its addresses.
	OnRequest bool
	// First and Last are its virtual router IDs, 1 to 255.
	First, Last uint8
	// Namespaces and Services select who may get addresses, by labels; nil = all.
	Namespaces, Services labels.Selector
}

// Check returns what is wrong with pools, by name: a pool with an error gives no addresses. Ranges
// of a pool must not overlap each other, those of a pool with a lesser name, or networks of the
// cluster.
func Check(pools []Pool, networks []netip.Prefix) map[string]error {
	wrong := map[string]error{}
	type owned struct {
		owner string
		Range
	}
	var before []owned
	for _, n := range networks {
		before = append(before, owned{"network " + n.String() + " of the cluster", ofPrefix(n.Masked())})
	}
	for _, p := range byName(pools) {
		own := len(before)
		for _, r := range p.Ranges {
			if i := slices.IndexFunc(before, func(o owned) bool { return r.overlaps(o.Range) }); i >= 0 && wrong[p.Name] == nil {
				wrong[p.Name] = fmt.Errorf("%w %s: range %s overlaps %s", ErrPool, p.Name, r, before[i].owner)
			}
			before = append(before, owned{fmt.Sprintf("range %s of pool %s", r, p.Name), r})
		}
		if len(p.Ranges) == 0 {
			wrong[p.Name] = fmt.Errorf("%w %s: it has no ranges", ErrPool, p.Name)
		}
		if wrong[p.Name] != nil {
			before = before[:own]
		}
	}
	return wrong
}

// byName returns the pools in the order of their names.
func byName(pools []Pool) []Pool {
	sorted := slices.Clone(pools)
	slices.SortFunc(sorted, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	return sorted
}

// has reports whether the pool gives an address.
func (p *Pool) has(a netip.Addr) bool {
	return slices.ContainsFunc(p.Ranges, func(r Range) bool { return r.contains(a) }) && !p.avoids(a)
}

// avoids reports whether the pool never gives an address of its ranges.
func (p *Pool) avoids(a netip.Addr) bool { return a.Is4() && slices.Contains(p.Avoid, a.As4()[3]) }

// refuses says why a Service gets nothing from the pool; "" = it may.
func (p *Pool) refuses(s *Service) string {
	switch {
	case s.Pool != "" && s.Pool != p.Name:
		return "the Service asks for another pool"
	case p.Namespaces != nil && !p.Namespaces.Matches(s.Namespace):
		return "the pool does not select its namespace"
	case p.Services != nil && !p.Services.Matches(s.Labels):
		return "the pool does not select the Service"
	}
	return ""
}
