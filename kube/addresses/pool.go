package addresses

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// ErrPool is in every error of a pool.
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
		if err != nil || p != p.Masked() || p.Addr().Is4In6() {
			return Range{}, fmt.Errorf("%q is no network such as 192.0.2.0/28 and no range such as 192.0.2.1-192.0.2.9", text)
		}
		return ofPrefix(p), nil
	}
	a, errA := netip.ParseAddr(strings.TrimSpace(first))
	b, errB := netip.ParseAddr(strings.TrimSpace(last))
	if errA != nil || errB != nil || a.Is4() != b.Is4() || a.Is4In6() || b.Is4In6() || a.Zone()+b.Zone() != "" || b.Less(a) {
		return Range{}, fmt.Errorf("%q is no range of addresses of one family", text)
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
	// Wrong is why the pool gives nothing; nil = it is right. Services keep what they have of it.
	Wrong error
}

// Check returns what is wrong with pools, by name. Ranges of a pool must not overlap each other or
// networks of the cluster, and must not contain addresses of nodes, which the map names. Two pools
// must not have a common address, nor a common virtual router ID for the same family: the pool with
// the later name is wrong. Pools that are wrong already are passed over.
func Check(pools []Pool, networks []netip.Prefix, nodes map[netip.Addr]string) map[string]error {
	wrong := map[string]error{}
	type owned struct {
		owner string
		Range
	}
	var before []owned
	for _, n := range networks {
		before = append(before, owned{"network " + n.String() + " of the cluster", ofPrefix(n.Masked())})
	}
	for at, node := range nodes {
		before = append(before, owned{fmt.Sprintf("address %s of Node %s", at, node), Range{at, at}})
	}
	slices.SortFunc(before, func(a, b owned) int { return a.First.Compare(b.First) })
	var right []*Pool
	for _, p := range byName(pools) {
		if p.Wrong != nil {
			continue
		}
		own := len(before)
		for _, r := range p.Ranges {
			if i := slices.IndexFunc(before, func(o owned) bool { return r.overlaps(o.Range) }); i >= 0 && wrong[p.Name] == nil {
				wrong[p.Name] = fmt.Errorf("%w %s: range %s overlaps %s", ErrPool, p.Name, r, before[i].owner)
			}
			before = append(before, owned{fmt.Sprintf("range %s of pool %s", r, p.Name), r})
		}
		if i := slices.IndexFunc(right, p.sharesRouters); i >= 0 && wrong[p.Name] == nil {
			o := right[i]
			wrong[p.Name] = fmt.Errorf("%w %s: virtual routers %d-%d overlap those of pool %s, %d-%d: divide 1-255 among the pools", ErrPool, p.Name, p.First, p.Last, o.Name, o.First, o.Last)
		}
		if len(p.Ranges) == 0 {
			wrong[p.Name] = fmt.Errorf("%w %s: it has no ranges", ErrPool, p.Name)
		}
		if wrong[p.Name] != nil {
			before = before[:own]
			continue
		}
		right = append(right, &p)
	}
	return wrong
}

// sharesRouters reports whether two pools have a virtual router in common.
func (p *Pool) sharesRouters(o *Pool) bool {
	for _, is4 := range []bool{true, false} {
		has := func(r Range) bool { return r.First.Is4() == is4 }
		if p.First <= o.Last && o.First <= p.Last && slices.ContainsFunc(p.Ranges, has) && slices.ContainsFunc(o.Ranges, has) {
			return true
		}
	}
	return false
}

// byName returns the pools in the order of their names.
func byName(pools []Pool) []Pool {
	sorted := slices.Clone(pools)
	slices.SortFunc(sorted, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	return sorted
}

// noRoom reports whether the ranges have addresses for which no group has room.
func (p *Pool) noRoom(l *Layout) bool {
	for _, r := range p.Ranges {
		last := r.Last
		for r.contains(last) && p.avoids(last) {
			last = last.Prev()
		}
		if _, has := l.Group(last); !has && r.contains(last) {
			return true
		}
	}
	return false
}

// Covers reports whether an address is in the ranges, given or not.
func (p *Pool) Covers(a netip.Addr) bool {
	return slices.ContainsFunc(p.Ranges, func(r Range) bool { return r.contains(a) })
}

// avoids reports whether the pool never gives an address of its ranges.
func (p *Pool) avoids(a netip.Addr) bool { return a.Is4() && slices.Contains(p.Avoid, a.As4()[3]) }

// refuses says why a Service gets nothing from the pool; "" = it may.
func (p *Pool) refuses(s *Service) string {
	switch {
	case s.Pool != "" && s.Pool != p.Name:
		return "the Service asks for another pool"
	case p.Wrong != nil:
		return "the pool is refused"
	case p.Namespaces != nil && !p.Namespaces.Matches(s.Namespace):
		return "the pool does not select its namespace"
	case p.Services != nil && !p.Services.Matches(s.Labels):
		return "the pool does not select the Service"
	}
	return ""
}
