package server

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// actorOrders are the orders of a list of actors by a number, the largest first. The default order
// is by path.
var actorOrders = map[string]func(*api.Actor) uint64{
	"pending":  func(a *api.Actor) uint64 { return a.Pending },
	"received": func(a *api.Actor) uint64 { return a.Received },
	"restarts": func(a *api.Actor) uint64 { return a.Restarts },
	"failures": func(a *api.Actor) uint64 { return a.Failures },
	"busy":     func(a *api.Actor) uint64 { return uint64(max(a.BusySeconds, 0) * 1e6) },
}

// sortNames are the values of sort for actors.
func sortNames() []string {
	return []string{"path", "pending", "received", "restarts", "failures", "busy"}
}

// pageActors selects, orders and cuts a list of actors.
func pageActors(all []api.Actor, q *listQuery) api.Page[api.Actor] {
	kind, state, under := q.filters["kind"], q.filters["state"], strings.TrimSuffix(q.filters["under"], "/")
	selected := all
	if kind != "" || state != "" || under != "" {
		selected = nil
		for _, a := range all {
			if (kind == "" || a.Kind == kind) && (state == "" || a.State == state) && isUnder(a.Path, under) {
				selected = append(selected, a)
			}
		}
	}
	value := actorOrders[q.sort]
	return page(selected, q, func(a *api.Actor) cursor {
		c := cursor{Sort: q.sort, Key: a.Path}
		if value != nil {
			c.Value = value(a)
		}
		return c
	})
}

// isUnder reports whether an actor is the given one or below it; "" is above all.
func isUnder(path, under string) bool {
	return under == "" || path == under || strings.HasPrefix(path, under+"/")
}

// pageServices selects and cuts a list of services.
func pageServices(all []api.Service, q *listQuery) api.Page[api.Service] {
	served, state, namespace := q.filters["served"], q.filters["state"], q.filters["namespace"]
	selected := all
	if served != "" || state != "" || namespace != "" {
		selected = nil
		for _, s := range all {
			if (served == "" || string(s.Served) == served) && (state == "" || string(s.State) == state) && (namespace == "" || strings.HasPrefix(s.Key, namespace+"/")) {
				selected = append(selected, s)
			}
		}
	}
	return page(selected, q, func(s *api.Service) cursor { return cursor{Sort: q.sort, Key: s.Key} })
}

// page orders items by their places, the largest value first and then by key. It returns the items
// behind the query's cursor. It moves the places, not the items, which are large.
func page[T any](items []T, q *listQuery, place func(*T) cursor) api.Page[T] {
	type placed struct {
		cursor
		item *T
	}
	order := make([]placed, len(items))
	for i := range items {
		order[i] = placed{place(&items[i]), &items[i]}
	}
	slices.SortFunc(order, func(a, b placed) int { return a.compare(b.cursor) })
	out := api.Page[T]{Total: len(items)}
	if q.cursor != nil {
		start, found := slices.BinarySearchFunc(order, *q.cursor, func(p placed, c cursor) int { return p.compare(c) })
		if found {
			start++
		}
		order = order[start:]
	}
	if len(order) > q.limit {
		order = order[:q.limit]
		out.Next = order[q.limit-1].encode()
	}
	out.Items = make([]T, len(order))
	for i := range order {
		out.Items[i] = *order[i].item
	}
	return out
}

// compare orders places: the larger value first, then the smaller key.
func (c cursor) compare(other cursor) int {
	return cmp.Or(cmp.Compare(other.Value, c.Value), strings.Compare(c.Key, other.Key))
}
