package addresses

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Port is a port of a Service.
type Port struct {
	// Protocol is "TCP", "UDP" or "SCTP".
	Protocol string
	Port     uint16
}

// Service is a Service of type LoadBalancer that gets its addresses from pools.
type Service struct {
	// Key is "namespace/name". Of Services that claim the same address, the older one has it.
	Key     string
	Created int64
	// Namespace are the labels of the namespace, Labels those of the Service.
	Namespace, Labels labels.Set
	// IPv4 and IPv6 are its families.
	IPv4, IPv6 bool
	// Pool is the name of the pool that it asks for; "" = any.
	Pool string
	// Wanted are the addresses that it asks for, at most one of each family.
	Wanted []netip.Addr
	// Share is a key: Services with the same key may have one address, where their Ports differ and
	// none of them is Local. "" = it shares no address.
	Share string
	Ports []Port
	// Local says that only nodes with an endpoint answer (externalTrafficPolicy).
	Local bool
	// Has are the addresses in its status.
	Has []netip.Addr
}

// Given are the addresses that a Service should have.
type Given struct {
	Key       string
	Addresses []netip.Addr
	// Why says for each missing family why there is no address.
	Why []string
}

// Usage counts the addresses of a pool. A number of 2^64-1 means at least so many.
type Usage struct{ Total, Given uint64 }

// Allocate gives addresses to Services: each keeps what it has as long as a pool may give it, then
// come the addresses that Services ask for, and then free ones, the lowest first. Pools must be
// without an error of Check. The results are in the order of the keys, the usage is by pool.
func Allocate(pools []Pool, services []Service) ([]Given, map[string]Usage) {
	a := &allocation{pools: byName(pools), holders: map[netip.Addr]*holder{}, shared: map[string][]netip.Addr{}, next: map[Range]netip.Addr{}}
	order := make([]*Service, len(services))
	for i := range services {
		order[i] = &services[i]
	}
	slices.SortFunc(order, func(x, y *Service) int {
		return cmp.Or(cmp.Compare(x.Created, y.Created), strings.Compare(x.Key, y.Key))
	})
	given := make(map[string]*Given, len(order))
	each := func(step func(s *Service, g *Given, is4 bool)) {
		for _, s := range order {
			for _, is4 := range []bool{true, false} {
				if g := given[s.Key]; (is4 && s.IPv4 || !is4 && s.IPv6) && !slices.ContainsFunc(g.Addresses, of(is4)) {
					step(s, g, is4)
				}
			}
		}
	}
	for _, s := range order {
		given[s.Key] = &Given{Key: s.Key}
	}
	each(a.keep)
	each(a.ask)
	each(a.find)
	results := make([]Given, 0, len(order))
	for _, s := range order {
		results = append(results, *given[s.Key])
	}
	slices.SortFunc(results, func(x, y Given) int { return strings.Compare(x.Key, y.Key) })
	return results, a.usage()
}

// of selects the addresses of a family.
func of(is4 bool) func(netip.Addr) bool {
	return func(a netip.Addr) bool { return a.Is4() == is4 }
}

// family names a family.
func family(is4 bool) string {
	if is4 {
		return "IPv4"
	}
	return "IPv6"
}

// allocation is the state of one call of Allocate.
type allocation struct {
	pools   []Pool // by name
	holders map[netip.Addr]*holder
	shared  map[string][]netip.Addr // addresses of each Share
	next    map[Range]netip.Addr    // every address of the range before it was tried
}

// holder is who has an address.
type holder struct {
	key   string // of the first Service
	share string // "" = the address is not shared
	ports map[Port]string
}

// busy says why a Service cannot have an address besides others; "" = it can.
func (a *allocation) busy(s *Service, at netip.Addr) string {
	h := a.holders[at]
	switch {
	case h == nil:
		return ""
	case h.share == "" || s.Share != h.share || s.Local:
		return "Service " + h.key + " has it"
	}
	for _, p := range s.Ports {
		if other, used := h.ports[p]; used {
			return fmt.Sprintf("Service %s has its port %d/%s", other, p.Port, p.Protocol)
		}
	}
	return ""
}

// give enters an address.
func (a *allocation) give(s *Service, g *Given, at netip.Addr) {
	g.Addresses = append(g.Addresses, at)
	h := a.holders[at]
	if h == nil {
		h = &holder{key: s.Key, ports: map[Port]string{}}
		if !s.Local {
			h.share = s.Share
		}
		a.holders[at] = h
		if h.share != "" {
			a.shared[h.share] = append(a.shared[h.share], at)
		}
	}
	for _, p := range s.Ports {
		h.ports[p] = s.Key
	}
}

// barred says why no pool gives an address to a Service; "" = one does.
func (a *allocation) barred(s *Service, at netip.Addr) string {
	for i := range a.pools {
		if p := &a.pools[i]; p.has(at) {
			return p.refuses(s)
		}
	}
	return "no pool has it"
}

// keep keeps the address that a Service has, unless it asks for another one.
func (a *allocation) keep(s *Service, g *Given, is4 bool) {
	for _, at := range s.Has {
		asks := slices.ContainsFunc(s.Wanted, of(is4))
		if at.Is4() == is4 && a.barred(s, at) == "" && a.busy(s, at) == "" && (!asks || slices.Contains(s.Wanted, at)) {
			a.give(s, g, at)
			return
		}
	}
}

// ask gives the address that a Service asks for.
func (a *allocation) ask(s *Service, g *Given, is4 bool) {
	if i := slices.IndexFunc(s.Wanted, of(is4)); i >= 0 {
		at := s.Wanted[i]
		if why := cmp.Or(a.barred(s, at), a.busy(s, at)); why != "" {
			g.Why = append(g.Why, fmt.Sprintf("it asks for %s: %s", at, why))
			return
		}
		a.give(s, g, at)
	}
}

// find gives an address that the Service may share, or the lowest free one.
func (a *allocation) find(s *Service, g *Given, is4 bool) {
	if slices.ContainsFunc(s.Wanted, of(is4)) {
		return // ask has said why not
	}
	for _, at := range a.shared[s.Share] {
		if at.Is4() == is4 && s.Share != "" && a.barred(s, at) == "" && a.busy(s, at) == "" {
			a.give(s, g, at)
			return
		}
	}
	var why []string
	for i := range a.pools {
		p := &a.pools[i]
		if p.OnRequest && s.Pool == "" || !slices.ContainsFunc(p.Ranges, func(r Range) bool { return r.First.Is4() == is4 }) {
			continue
		}
		if refused := p.refuses(s); refused != "" {
			why = append(why, fmt.Sprintf("%s: %s", p.Name, refused))
			continue
		}
		if at := a.free(p, is4); at.IsValid() {
			a.give(s, g, at)
			return
		}
		why = append(why, p.Name+": it has no free address")
	}
	g.Why = append(g.Why, fmt.Sprintf("no pool gives an %s address (%s)", family(is4), cmp.Or(strings.Join(why, "; "), "there is none")))
}

// free returns the lowest free address of a pool; the zero Addr = there is none. Each address is
// looked at once in a call of Allocate.
func (a *allocation) free(p *Pool, is4 bool) netip.Addr {
	for _, r := range p.Ranges {
		if r.First.Is4() != is4 {
			continue
		}
		at, tried := a.next[r]
		if !tried {
			at = r.First
		}
		for ; at.IsValid() && r.contains(at); at = at.Next() {
			if a.holders[at] == nil && !p.avoids(at) {
				a.next[r] = at
				return at
			}
		}
		a.next[r] = at
	}
	return netip.Addr{}
}

// usage counts addresses.
func (a *allocation) usage() map[string]Usage {
	all := make(map[string]Usage, len(a.pools))
	for i := range a.pools {
		p, u := &a.pools[i], Usage{}
		for _, r := range p.Ranges {
			if u.Total += r.size(); u.Total < r.size() {
				u.Total = ^uint64(0)
			}
		}
		for at := range a.holders {
			if p.has(at) {
				u.Given++
			}
		}
		all[p.Name] = u
	}
	return all
}
