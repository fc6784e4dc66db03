package nat44

import (
	"cmp"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// Claims knows the rows that every service wants, and whose row is installed where several services, or somebody else, want the same
// key: what is in VPP and not ours comes first, then the service that was created first, then the smallest service key. Who loses gets
// the key as soon as it is free. It belongs to one goroutine.
type Claims struct {
	// services by "namespace/name".
	services map[string]claimant
	// claims by key; the winner is first. Keys nobody wants are not in it.
	claims map[Key][]claim
	// foreign are the keys that are not ours, with a description.
	foreign map[Key]string
}

// claimant is one service with the keys it wants.
type claimant struct {
	created int64
	keys    []Key
}

// claim is the wish of one service for one key.
type claim struct {
	service string
	created int64
	row     Row
}

// compare orders claims: the first one wins.
func (c claim) compare(other claim) int {
	return cmp.Or(cmp.Compare(c.created, other.created), cmp.Compare(c.service, other.service))
}

// NewClaims returns an empty value.
func NewClaims() *Claims {
	return &Claims{services: map[string]claimant{}, claims: map[Key][]claim{}, foreign: map[Key]string{}}
}

// Set replaces all rows of a service, created at the given Unix second, and returns the keys, ordered, for which Row has another answer
// than before. Of several rows with the same key the last one counts. Rows must not be changed afterwards.
func (c *Claims) Set(service string, created int64, rows []Row) []Key {
	wanted := make(map[Key]Row, len(rows))
	for _, row := range rows {
		wanted[row.Key] = row
	}
	touched := slices.Clone(c.services[service].keys)
	for key := range wanted {
		touched = append(touched, key)
	}
	slices.SortFunc(touched, Key.Compare)
	touched = slices.Compact(touched)

	var changed []Key
	for _, key := range touched {
		row, claimed := wanted[key]
		if c.update(key, claim{service, created, row}, claimed) {
			changed = append(changed, key)
		}
	}
	c.services[service] = claimant{created: created, keys: slices.SortedFunc(maps.Keys(wanted), Key.Compare)}
	if len(wanted) == 0 {
		delete(c.services, service)
	}
	return changed
}

// Remove withdraws all rows of a service and returns the keys for which Row has another answer than before.
func (c *Claims) Remove(service string) []Key { return c.Set(service, 0, nil) }

// SetForeign replaces the keys that are in VPP and not ours, each with a description, and returns those for which Row has another answer
// than before.
func (c *Claims) SetForeign(foreign map[Key]string) []Key {
	var changed []Key
	for key := range c.claims {
		_, before := c.foreign[key]
		if _, after := foreign[key]; before != after {
			changed = append(changed, key)
		}
	}
	c.foreign = maps.Clone(foreign)
	slices.SortFunc(changed, Key.Compare)
	return changed
}

// update replaces or withdraws the claim of one service for one key and reports whether Row has another answer now.
func (c *Claims) update(key Key, mine claim, claimed bool) bool {
	before, had := c.Row(key)
	claims := slices.DeleteFunc(slices.Clone(c.claims[key]), func(other claim) bool { return other.service == mine.service })
	if claimed {
		at, _ := slices.BinarySearchFunc(claims, mine, claim.compare)
		claims = slices.Insert(claims, at, mine)
	}
	if len(claims) == 0 {
		delete(c.claims, key)
	} else {
		c.claims[key] = claims
	}
	after, has := c.Row(key)
	return had != has || has && !before.Equal(after)
}

// Owner returns the service whose row is installed under the key; "" and true where the key is in VPP and not ours; false where nobody
// wants it.
func (c *Claims) Owner(key Key) (service string, claimed bool) {
	if _, foreign := c.foreign[key]; foreign {
		return "", true
	}
	if claims := c.claims[key]; len(claims) > 0 {
		return claims[0].service, true
	}
	return "", false
}

// Row returns the row to be installed under the key, and whether there is one.
func (c *Claims) Row(key Key) (Row, bool) {
	if _, foreign := c.foreign[key]; foreign || len(c.claims[key]) == 0 {
		return Row{}, false
	}
	return c.claims[key][0].row, true
}

// Rows returns the rows to be installed, by key, for Want. The map belongs to the caller.
func (c *Claims) Rows() map[Key]Row {
	rows := make(map[Key]Row, len(c.claims))
	for key := range c.claims {
		if row, ok := c.Row(key); ok {
			rows[key] = row
		}
	}
	return rows
}

// Of returns the keys that a service wants, ordered; shared, not to be changed.
func (c *Claims) Of(service string) []Key { return c.services[service].keys }

// Services returns all services that want the key, the winner first. Those whose acknowledgement changes with the key are among them.
func (c *Claims) Services(key Key) []string {
	services := make([]string, len(c.claims[key]))
	for i, claim := range c.claims[key] {
		services[i] = claim.service
	}
	return services
}

// Conflicts returns the keys that a service wants and does not get, ordered, with their owners; the owner of what is not ours is its
// description in VPP.
func (c *Claims) Conflicts(service string) []*messages.Conflict {
	var conflicts []*messages.Conflict
	for _, key := range c.services[service].keys {
		owner, _ := c.Owner(key)
		if owner == service {
			continue
		}
		if owner == "" {
			owner = "VPP: " + c.foreign[key]
		}
		conflicts = append(conflicts, &messages.Conflict{Frontend: key.String(), Owner: owner})
	}
	return conflicts
}
