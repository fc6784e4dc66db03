package actors

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// routebook is what the routes renderer knows: which service wants what for which address, and which routes must be looked at. It is a
// value of plain data with pure methods, like the ledger.
type routebook struct {
	backlog[netip.Prefix]
	accounts map[string]*customer
	claims   *routes.Claims
	config   routes.Config
	none     bool // this VPP cannot have routes of ours
}

func newRoutebook(config routes.Config, networks []netip.Prefix) *routebook {
	claims := routes.NewClaims()
	claimed := func(p netip.Prefix) bool {
		_, found := claims.Route(p)
		return found
	}
	b := &routebook{
		backlog: newBacklog("routes", comparePrefixes, claimed, claims.Services), accounts: map[string]*customer{}, claims: claims, config: config,
	}
	for _, p := range claims.SetNetworks(networks) {
		b.list(p)
	}
	return b
}

// comparePrefixes orders prefixes by address, the shorter one first.
func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// customer is a service that has an account; nil = it has none.
func (b *routebook) customer(key string) *customer { return b.accounts[key] }

// customers are the keys of all accounts, ordered.
func (b *routebook) customers() []string { return sortedKeys(b.accounts) }

// count is how many accounts there are.
func (b *routebook) count() int { return len(b.accounts) }

// put adopts the view of a service; nil closes it. It returns the services whose standing it changed: the service itself and those with a
// wish for the same address.
func (b *routebook) put(key string, generation, hash uint64, view *messages.ServiceView) []string {
	a := b.accounts[key]
	if a == nil {
		a = &customer{}
		b.accounts[key] = a
	}
	a.generation, a.hash, a.view = generation, hash, view
	return b.exchange(key, b.prefixes(key), func() []netip.Prefix {
		if view == nil {
			return b.claims.Remove(key)
		}
		return b.claims.Set(key, routes.Plan(view, b.config).Claims)
	})
}

// prefixes are those that a service has a wish for, ordered.
func (b *routebook) prefixes(key string) []netip.Prefix {
	claims := b.claims.Of(key)
	all := make([]netip.Prefix, len(claims))
	for i, claim := range claims {
		all[i] = netip.PrefixFrom(claim.Addr, claim.Addr.BitLen())
	}
	return all
}

// resettle learns where hosts are, and returns the services that this concerns.
func (b *routebook) resettle(ground routes.Ground) []string {
	concerned := map[string]bool{}
	for _, p := range b.claims.SetGround(ground) {
		b.touch(p)
		b.affected(p, concerned)
	}
	return sortedKeys(concerned)
}

// contested reports whether a service that has not spoken may still want something else for a prefix: external addresses may be those of
// several services, cluster IPs and service networks are not.
func (b *routebook) contested(p netip.Prefix) bool {
	for _, name := range b.claims.Services(p) {
		for _, claim := range b.claims.Of(name) {
			if claim.Addr == p.Addr() && claim.External {
				return true
			}
		}
	}
	return false
}

// wanted is what VPP should hold of these prefixes.
func (b *routebook) wanted(prefixes ...netip.Prefix) routes.Want {
	want := make(routes.Want, len(prefixes))
	for _, p := range prefixes {
		if route, ok := b.claims.Route(p); ok {
			want[p] = route
		}
	}
	return want
}

// close forgets a service that is gone.
func (b *routebook) close(key string) {
	delete(b.accounts, key)
	delete(b.leaving, key)
}

// ack describes what became of a service in VPP, as far as it is known.
func (b *routebook) ack(renderer, key string, known bool) *messages.RenderAck {
	a := b.accounts[key]
	ack := a.ack(renderer, key, known)
	if b.left(key) && a.view == nil && known {
		ack.State = messages.RenderState_RENDER_RETIRED
	}
	for _, p := range b.prefixes(key) {
		_, dirty := b.dirty[p]
		b.ackThing(ack, p, dirty)
		if route, wanted := b.claims.Route(p); wanted && b.none {
			ack.Approximations = append(ack.Approximations, &messages.Approximation{
				Service: key, Frontend: p.Addr().String(), Wanted: route.Kind.String(), Rendered: "the packet follows the routes of VPP",
				Why: routes.ErrUnsupported.Error(),
			})
		}
	}
	b.ackLeaving(ack, key)
	return ack
}
