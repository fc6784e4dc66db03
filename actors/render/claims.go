package render

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Claim is the wish of one service for one object.
type Claim[V any] struct {
	// Service wants the object; Created is the creation of the service in Unix seconds.
	Service string
	Created int64
	// Value is the wish. A wish of a lower Rank counts more.
	Value V
	Rank  int
}

// compare orders claims by rank, then by the creation of the service, then by its key.
func (c Claim[V]) compare(other Claim[V]) int {
	return cmp.Or(cmp.Compare(c.Rank, other.Rank), cmp.Compare(c.Created, other.Created), cmp.Compare(c.Service, other.Service))
}

// Claims knows the wishes of all services, and decides where several services want the same object.
// A service that loses gets the object as soon as it is free. V is the wish of one service, D the
// value that VPP should hold. Claims belongs to the Driver's goroutine.
type Claims[K comparable, V, D any] struct {
	Rules[K, V, D]
	services map[string][]K
	claims   map[K][]Claim[V]
	changed  []K      // keys whose wanted value has changed since the last call of News
	again    []K      // keys to compare again since the last call of Again
	concerns []string // services
}

// Rules say how wishes become objects.
type Rules[K comparable, V, D any] struct {
	// Order compares keys, so that a run is repeatable.
	Order func(a, b K) int
	// Rank returns the rank of a wish: lower ranks win; equal ranks are ordered by age. nil =
	// all ranks are equal.
	Rank func(V) int
	// Resolve returns the value that follows from the claims on an object, in their order, and
	// whether VPP should hold a value at all.
	Resolve func(k K, claims []Claim[V]) (D, bool)
	// Same compares two results of Resolve.
	Same func(a, b D) bool
	// Taken describes the object that another client of VPP has under the key; "" = none. While
	// there is one, VPP should hold no object of the agent. nil = other clients have no such
	// objects.
	Taken func(k K) string
	// Shared says that services share an object, so that no service owns it.
	Shared bool
}

// wishes are the Claims of a renderer with any types of wishes and values.
type wishes[K Key] interface {
	Compare(a, b K) int
	Keys() iter.Seq[K]
	Objects(service string) []K
	Services(k K) []string
	Owner(k K) string
	Claimed(k K) bool
	News() (changed []K, services []string)
	Again() (keys []K)
}

// NewClaims returns an empty value.
func NewClaims[K comparable, V, D any](rules Rules[K, V, D]) *Claims[K, V, D] {
	if rules.Rank == nil {
		rules.Rank = func(V) int { return 0 }
	}
	if rules.Taken == nil {
		rules.Taken = func(K) string { return "" }
	}
	return &Claims[K, V, D]{Rules: rules, services: map[string][]K{}, claims: map[K][]Claim[V]{}}
}

// Touch notes that the wanted value of objects has changed for a reason outside of the claims.
func (c *Claims[K, V, D]) Touch(keys ...K) { c.changed = append(c.changed, keys...) }

// CompareAgain notes that objects have to be compared with VPP, although their services have what
// they want: these stay in sync meanwhile.
func (c *Claims[K, V, D]) CompareAgain(keys ...K) { c.again = append(c.again, keys...) }

// Again returns, once, the objects of CompareAgain.
func (c *Claims[K, V, D]) Again() (keys []K) {
	keys, c.again = c.again, nil
	return keys
}

// Concern notes that the acknowledgement of services may have changed although the wanted values
// have not.
func (c *Claims[K, V, D]) Concern(services ...string) { c.concerns = append(c.concerns, services...) }

// News returns, once, the objects whose wanted value has changed, and the services whose
// acknowledgement may have changed besides.
func (c *Claims[K, V, D]) News() (changed []K, services []string) {
	changed, services, c.changed, c.concerns = c.changed, c.concerns, nil, nil
	return changed, services
}

// Compare orders keys.
func (c *Claims[K, V, D]) Compare(a, b K) int { return c.Order(a, b) }

// Set replaces all wishes of a service and returns the keys, ordered, for which Desired has another
// answer than before. The values must not be changed afterwards.
func (c *Claims[K, V, D]) Set(service string, created int64, wishes map[K]V) (changed []K) {
	touched := slices.AppendSeq(slices.Clone(c.services[service]), maps.Keys(wishes))
	changed = c.Change(touched, func() {
		for _, k := range c.services[service] {
			c.withdraw(k, service)
		}
		for k, v := range wishes {
			claim := Claim[V]{service, created, v, c.Rank(v)}
			at, _ := slices.BinarySearchFunc(c.claims[k], claim, Claim[V].compare)
			c.claims[k] = slices.Insert(slices.Clip(c.claims[k]), at, claim)
		}
	})
	if delete(c.services, service); len(wishes) > 0 {
		c.services[service] = slices.SortedFunc(maps.Keys(wishes), c.Compare)
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

// Change carries out a change on which Resolve depends. It returns the keys, ordered, for which
// Desired has another answer afterwards.
func (c *Claims[K, V, D]) Change(keys []K, change func()) (changed []K) {
	slices.SortFunc(keys, c.Compare)
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
		// of a large service, only the changed objects go into the work queue
		if after, found := c.Desired(k); found != before[i].found || found && !c.Same(after, before[i].value) {
			changed = append(changed, k)
		}
	}
	c.Touch(changed...)
	return changed
}

// Desired returns the value that VPP should hold under a key, and whether it should hold one.
func (c *Claims[K, V, D]) Desired(k K) (desired D, found bool) {
	if claims := c.claims[k]; len(claims) > 0 && c.Taken(k) == "" {
		if d, wanted := c.Resolve(k, claims); wanted {
			return d, true
		}
	}
	return desired, false
}

// All returns everything that VPP should hold. The map belongs to the caller.
func (c *Claims[K, V, D]) All() map[K]D {
	all := make(map[K]D, len(c.claims))
	for k := range c.claims {
		if d, found := c.Desired(k); found {
			all[k] = d
		}
	}
	return all
}

// Keys are all objects with a claim, in no order.
func (c *Claims[K, V, D]) Keys() iter.Seq[K] { return maps.Keys(c.claims) }

// Claimed reports whether VPP should hold an object because of its claims.
func (c *Claims[K, V, D]) Claimed(k K) bool {
	_, found := c.Desired(k)
	return found
}

// Objects returns the objects that a service wants, ordered; shared, not to be changed.
func (c *Claims[K, V, D]) Objects(service string) []K { return c.services[service] }

// Services returns the services that want an object, the owner first. A claim without a service
// belongs to the renderer.
func (c *Claims[K, V, D]) Services(k K) (services []string) {
	for _, claim := range c.claims[k] {
		if claim.Service != "" {
			services = append(services, claim.Service)
		}
	}
	return services
}

// Owner returns the owner of an object: a service, or a description of another client of VPP. "" =
// the services share the object.
func (c *Claims[K, V, D]) Owner(k K) string {
	if c.Shared {
		return c.Taken(k)
	}
	first, _ := c.First(k)
	return cmp.Or(c.Taken(k), first.Service)
}

// At returns the claims on a key, the winning one first; shared, not to be changed.
func (c *Claims[K, V, D]) At(k K) []Claim[V] { return c.claims[k] }

// First returns the winning claim on a key; false = there is none.
func (c *Claims[K, V, D]) First(k K) (Claim[V], bool) {
	if claims := c.claims[k]; len(claims) > 0 {
		return claims[0], true
	}
	return Claim[V]{}, false
}
