package render

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Claim is the wish of one service for one object.
type Claim[V any] struct {
	// Service wants it; Created is its creation in Unix seconds.
	Service string
	Created int64
	// Value is what it wants, Rank how much that counts: the lowest most.
	Value V
	Rank  int
}

// compare orders claims: the lowest rank, then the service that was created first, then the one
// with the smallest key.
func (c Claim[V]) compare(other Claim[V]) int {
	return cmp.Or(cmp.Compare(c.Rank, other.Rank), cmp.Compare(c.Created, other.Created), cmp.Compare(c.Service, other.Service))
}

// Claims knows what every service wants for which objects, and what follows where several want the
// same object. A service that loses gets the object as soon as it is free. V is the wish of one
// service, D what VPP should hold. It belongs to one goroutine.
type Claims[K comparable, V, D any] struct {
	order    func(a, b K) int
	rank     func(V) int
	resolve  func(k K, claims []Claim[V]) (D, bool)
	same     func(a, b D) bool
	services map[string][]K
	claims   map[K][]Claim[V]
}

// NewClaims returns an empty value. order orders keys; rank says how much a wish counts, the lowest
// most, before age does, nil = all alike; resolve says what the claims on an object, in their
// order, come to, and whether VPP should hold anything; same compares two of its results.
func NewClaims[K comparable, V, D any](
	order func(a, b K) int, rank func(V) int, resolve func(k K, claims []Claim[V]) (D, bool), same func(a, b D) bool,
) *Claims[K, V, D] {
	if rank == nil {
		rank = func(V) int { return 0 }
	}
	return &Claims[K, V, D]{order: order, rank: rank, resolve: resolve, same: same, services: map[string][]K{}, claims: map[K][]Claim[V]{}}
}

// Set replaces all wishes of a service and returns the keys, ordered, for which Desired has another
// answer than before. The values must not be changed afterwards.
func (c *Claims[K, V, D]) Set(service string, created int64, wishes map[K]V) (changed []K) {
	touched := slices.AppendSeq(slices.Clone(c.services[service]), maps.Keys(wishes))
	changed = c.Change(touched, func() {
		for _, k := range c.services[service] {
			c.withdraw(k, service)
		}
		for k, v := range wishes {
			claim := Claim[V]{service, created, v, c.rank(v)}
			at, _ := slices.BinarySearchFunc(c.claims[k], claim, Claim[V].compare)
			c.claims[k] = slices.Insert(slices.Clip(c.claims[k]), at, claim)
		}
	})
	if delete(c.services, service); len(wishes) > 0 {
		c.services[service] = slices.SortedFunc(maps.Keys(wishes), c.order)
	}
	return changed
}

// withdraw removes the claim of one service.
func (c *Claims[K, V, D]) withdraw(k K, service string) {
	left := slices.DeleteFunc(slices.Clone(c.claims[k]), func(o Claim[V]) bool { return o.Service == service })
	if c.claims[k] = left; len(left) == 0 {
		delete(c.claims, k)
	}
}

// Change carries out a change that resolve depends on and returns those of the keys, ordered, for
// which Desired has another answer then.
func (c *Claims[K, V, D]) Change(keys []K, change func()) (changed []K) {
	slices.SortFunc(keys, c.order)
	keys = slices.Compact(keys)
	type answer struct {
		value D
		found bool
	}
	before := make([]answer, len(keys))
	for i, k := range keys {
		before[i].value, before[i].found = c.Desired(k)
	}
	change()
	for i, k := range keys {
		if after, found := c.Desired(k); found != before[i].found || found && !c.same(after, before[i].value) {
			changed = append(changed, k)
		}
	}
	return changed
}

// Desired is what VPP should hold under a key, and whether it should hold anything.
func (c *Claims[K, V, D]) Desired(k K) (D, bool) {
	claims := c.claims[k]
	if len(claims) == 0 {
		var none D
		return none, false
	}
	return c.resolve(k, claims)
}

// All is everything that VPP should hold. The map belongs to the caller.
func (c *Claims[K, V, D]) All() map[K]D {
	all := make(map[K]D, len(c.claims))
	for k := range c.claims {
		if d, found := c.Desired(k); found {
			all[k] = d
		}
	}
	return all
}

// Keys are all keys with a claim, in no order.
func (c *Claims[K, V, D]) Keys() iter.Seq[K] { return maps.Keys(c.claims) }

// Of are the keys that a service wants, ordered; shared, not to be changed.
func (c *Claims[K, V, D]) Of(service string) []K { return c.services[service] }

// Services are those that want a key, in the order of their claims.
func (c *Claims[K, V, D]) Services(k K) []string {
	services := make([]string, len(c.claims[k]))
	for i, claim := range c.claims[k] {
		services[i] = claim.Service
	}
	return services
}

// At are the claims on a key, the one that counts most first; shared, not to be changed.
func (c *Claims[K, V, D]) At(k K) []Claim[V] { return c.claims[k] }

// First is the claim on a key that counts most; false = there is none.
func (c *Claims[K, V, D]) First(k K) (Claim[V], bool) {
	if claims := c.claims[k]; len(claims) > 0 {
		return claims[0], true
	}
	return Claim[V]{}, false
}
