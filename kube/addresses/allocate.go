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
	// Local says that only nodes with an endpoint answer (externalTrafficPolicy). It has its
	// virtual router for itself, because the addresses of one move together.
	Local bool
	// Has are the addresses in its status.
	Has []netip.Addr
	// Waits says why the Service gets no new address for now; "" = it gets one.
	Waits string
}

// Given are the addresses that a Service should have.
type Given struct {
	Key       string
	Addresses []netip.Addr
	// Why says for each missing family why there is no address.
	Why []string
	// Beside are the addresses of a Local Service whose virtual router has addresses of other
	// Services too: it became Local later.
	Beside []netip.Addr
}

// Usage counts the addresses of a pool that a group has room for. Addresses beside that of a Local
// Service in its group are neither given nor free.
type Usage struct {
	Given, Free int
	// NoRoom says that the ranges have more addresses than the groups have room for.
	NoRoom bool
}

// Allocate gives addresses to Services: each keeps what it has as long as a pool may give it, then
// come the addresses that Services ask for, and then free ones, the lowest first. Addresses in
// taken have other users, which it names; they are not given, and kept where they were given
// before. The results are in the order of the keys, the usage is by pool.
func Allocate(pools []Pool, services []Service, taken map[netip.Addr]string) ([]Given, map[string]Usage) {
	a := &allocation{
		holders: map[netip.Addr]*holder{}, used: map[Group]*use{}, taken: taken, shared: map[string][]netip.Addr{}, next: map[search]*place{},
	}
	for _, p := range byName(pools) {
		l := laid{Pool: p, Layout: &Layout{}}
		if p.Wrong == nil {
			l.Layout = p.Lay()
		}
		a.pools = append(a.pools, l)
	}
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
		g := given[s.Key]
		for _, at := range g.Addresses {
			if _, group := a.pool(at); s.Local && a.used[group] != nil && len(a.used[group].keys) > 1 {
				g.Beside = append(g.Beside, at)
			}
		}
		results = append(results, *g)
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
	pools   []laid // by name
	holders map[netip.Addr]*holder
	used    map[Group]*use
	taken   map[netip.Addr]string
	shared  map[string][]netip.Addr // addresses of each Share
	next    map[search]*place
}

// laid is a pool with its groups; a wrong one has none.
type laid struct {
	Pool
	*Layout
}

// holder is who has an address.
type holder struct {
	key   string // of the first Service
	share string // "" = the address is not shared
	ports map[Port]string
}

// use is who has addresses of a group.
type use struct {
	keys  []string // of Services
	local string   // the first Local one of them; "" = there is none
}

// search is a search for free addresses; place is where it goes on. An address that was of no use
// stays so until the end of the call.
type (
	search struct {
		pool       string
		is4, local bool
	}
	place struct{ id, member int }
)

// pool returns the pool that gives an address, and its group; nil = there is none.
func (a *allocation) pool(at netip.Addr) (*laid, Group) {
	for i := range a.pools {
		if g, has := a.pools[i].Group(at); has {
			return &a.pools[i], g
		}
	}
	return nil, Group{}
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

// crowded says why a Service should not get an address of a group; "" = it may.
func (a *allocation) crowded(s *Service, g Group) string {
	u := a.used[g]
	switch {
	case u == nil:
		return ""
	case s.Local:
		return fmt.Sprintf("virtual router %d is not free for a Local Service: %s has an address of it", g.ID, u.keys[0])
	case u.local != "":
		return fmt.Sprintf("virtual router %d belongs to the Local Service %s", g.ID, u.local)
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
	p, group := a.pool(at)
	if p == nil {
		return // kept, of a wrong pool
	}
	u := a.used[group]
	if u == nil {
		u = &use{}
		a.used[group] = u
	}
	u.keys = append(u.keys, s.Key)
	if s.Local && u.local == "" {
		u.local = s.Key
	}
}

// barred says why no pool gives an address to a Service; "" = one does.
func (a *allocation) barred(s *Service, at netip.Addr) string {
	if p, _ := a.pool(at); p != nil {
		return p.refuses(s)
	}
	return "no pool has it"
}

// keeps reports whether a Service may keep an address. Where a pool is wrong, nothing of it is
// taken away: the mistake would end connections.
func (a *allocation) keeps(s *Service, at netip.Addr) bool {
	if p, _ := a.pool(at); p != nil {
		return p.refuses(s) == ""
	}
	return slices.ContainsFunc(a.pools, func(p laid) bool {
		return p.Wrong != nil && (len(p.Ranges) == 0 || p.Covers(at))
	})
}

// keep keeps the address that a Service has, unless it asks for another one.
func (a *allocation) keep(s *Service, g *Given, is4 bool) {
	for _, at := range s.Has {
		asks := slices.ContainsFunc(s.Wanted, of(is4))
		if at.Is4() == is4 && a.keeps(s, at) && a.busy(s, at) == "" && (!asks || slices.Contains(s.Wanted, at)) {
			a.give(s, g, at)
			return
		}
	}
}

// ask gives the address that a Service asks for.
func (a *allocation) ask(s *Service, g *Given, is4 bool) {
	if i := slices.IndexFunc(s.Wanted, of(is4)); i >= 0 && s.Waits == "" {
		at := s.Wanted[i]
		_, group := a.pool(at)
		if why := cmp.Or(a.barred(s, at), a.busy(s, at), a.taken[at], a.crowded(s, group)); why != "" {
			g.Why = append(g.Why, fmt.Sprintf("it asks for %s: %s", at, why))
			return
		}
		a.give(s, g, at)
	}
}

// find gives an address that the Service may share, or the lowest free one.
func (a *allocation) find(s *Service, g *Given, is4 bool) {
	switch {
	case s.Waits != "":
		g.Why = append(g.Why, s.Waits)
		return
	case slices.ContainsFunc(s.Wanted, of(is4)):
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
		if p.OnRequest && s.Pool == "" || p.Wrong == nil && !slices.ContainsFunc(p.Ranges, func(r Range) bool { return r.First.Is4() == is4 }) {
			continue
		}
		if refused := p.refuses(s); refused != "" {
			why = append(why, fmt.Sprintf("%s: %s", p.Name, refused))
			continue
		}
		if at := a.free(p, s, is4); at.IsValid() {
			a.give(s, g, at)
			return
		}
		if s.Local {
			why = append(why, p.Name+": no virtual router is free, and a Local Service needs one for itself")
		} else {
			why = append(why, p.Name+": it has no free address")
		}
	}
	g.Why = append(g.Why, fmt.Sprintf("no pool gives an %s address (%s)", family(is4), cmp.Or(strings.Join(why, "; "), "there is none")))
}

// free returns the lowest free address of a pool for a Service; the zero Addr = there is none. Each
// address is looked at once in a call of Allocate, or twice where there are Local Services.
func (a *allocation) free(p *laid, s *Service, is4 bool) netip.Addr {
	key := search{p.Name, is4, s.Local}
	at := a.next[key]
	if at == nil {
		at = &place{id: int(p.First)}
		a.next[key] = at
	}
	for ; at.id <= int(p.Last); at.id, at.member = at.id+1, 0 {
		g := Group{uint8(at.id), !is4} //nolint:gosec // at most p.Last
		for members := p.Members[g]; at.member < len(members); at.member++ {
			if one := members[at.member]; a.holders[one] == nil && a.taken[one] == "" && a.crowded(s, g) == "" {
				return one
			}
		}
	}
	return netip.Addr{}
}

// usage counts addresses.
func (a *allocation) usage() map[string]Usage {
	all := make(map[string]Usage, len(a.pools))
	for i := range a.pools {
		p := &a.pools[i]
		u := Usage{NoRoom: p.Wrong == nil && p.noRoom(p.Layout)}
		for at := range a.holders {
			if _, has := p.Group(at); has || p.Wrong != nil && p.Covers(at) {
				u.Given++
			}
		}
		for g, members := range p.Members {
			if used := a.used[g]; used != nil && used.local != "" {
				continue
			}
			for _, at := range members {
				if a.holders[at] == nil && a.taken[at] == "" {
					u.Free++
				}
			}
		}
		all[p.Name] = u
	}
	return all
}
