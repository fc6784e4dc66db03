package server

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// errQuery matches all errors about the query of a request.
var errQuery = errors.New("bad query")

// listQuery filters, orders and pages a list of actors or services.
type listQuery struct {
	limit  int
	cursor *cursor
	// sort is the name of an order; "" = the natural one.
	sort string
	// filters are the values of the filter parameters of the request.
	filters map[string]string
}

// cursor is the end of a page: the sort value and the key of its last item. It is not an offset, so
// items that come and go between two pages neither repeat nor hide others.
type cursor struct {
	Sort  string `json:"s,omitempty"`
	Value uint64 `json:"v,omitempty"`
	Key   string `json:"k"`
}

// encode returns the cursor as a URL parameter.
func (c cursor) encode() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic("api: " + err.Error()) // strings and numbers always encode
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// decodeCursor reads a cursor. Clients may change a cursor, so every invalid cursor is an error.
func decodeCursor(text string) (*cursor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: cursor: was not issued by this server", errQuery)
	}
	c := &cursor{}
	if err := json.Unmarshal(raw, c); err != nil || c.Key == "" {
		return nil, fmt.Errorf("%w: cursor: was not issued by this server", errQuery)
	}
	return c, nil
}

// parameters reads the query of a URL strictly. An unknown or duplicate parameter is an error,
// because the client would believe that the answer is filtered.
func parameters(raw string, known ...string) (map[string]string, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errQuery, err)
	}
	out := map[string]string{}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("%w: unknown parameter %q: expected %s", errQuery, name, strings.Join(known, ", "))
		case len(all) > 1:
			return nil, fmt.Errorf("%w: parameter %q is duplicate", errQuery, name)
		}
		out[name] = all[0]
	}
	return out, nil
}

// limitOf reads the size of a page.
func limitOf(values map[string]string) (int, error) {
	text, given := values["limit"]
	if !given {
		return api.DefaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > api.MaxLimit {
		return 0, fmt.Errorf("%w: limit %q is not a number from 1 to %d", errQuery, text, api.MaxLimit)
	}
	return n, nil
}

// filters are the filter parameters of a list, each with its values; nil = any.
type filters map[string][]string

// parseList reads the query of a list with these orders and filters. A value that no item can have
// is an error, because the client would believe that there is no such item.
func parseList(raw string, orders []string, by filters) (*listQuery, error) {
	values, err := parameters(raw, append([]string{"limit", "cursor", "sort"}, slices.Sorted(maps.Keys(by))...)...)
	if err != nil {
		return nil, err
	}
	for name, known := range by {
		if value := values[name]; value != "" && known != nil && !slices.Contains(known, value) {
			return nil, fmt.Errorf("%w: %s %q is not one of %s", errQuery, name, value, strings.Join(known, ", "))
		}
	}
	q := &listQuery{sort: values["sort"], filters: values}
	if q.limit, err = limitOf(values); err != nil {
		return nil, err
	}
	if q.sort != "" && !slices.Contains(orders, q.sort) {
		return nil, fmt.Errorf("%w: sort %q is not one of %s", errQuery, q.sort, strings.Join(orders, ", "))
	}
	if text := values["cursor"]; text != "" {
		if q.cursor, err = decodeCursor(text); err != nil {
			return nil, err
		}
		if q.cursor.Sort != q.sort {
			return nil, fmt.Errorf("%w: cursor: belongs to a list with another order", errQuery)
		}
	}
	return q, nil
}

// parseWhole reads the query of a list that most clients read completely. Its default limit is
// api.MaxLimit.
func parseWhole(raw string) (*listQuery, error) {
	q, err := parseList(raw, nil, nil)
	if err == nil && q.filters["limit"] == "" {
		q.limit = api.MaxLimit
	}
	return q, err
}

// parseEvents reads the query of the journal.
func parseEvents(raw string) (api.EventQuery, error) {
	values, err := parameters(raw, "limit", "before", "after", "cause", "kind", "object")
	if err != nil {
		return api.EventQuery{}, err
	}
	q, err := eventsOf(values)
	if err == nil {
		q.Limit, err = limitOf(values)
	}
	if err != nil {
		return api.EventQuery{}, err
	}
	if text, given := values["before"]; given {
		if q.Before, err = strconv.ParseUint(text, 10, 64); err != nil || q.Before == 0 {
			return api.EventQuery{}, fmt.Errorf("%w: before %q is not the number of an event", errQuery, text)
		}
	}
	return q, nil
}

// eventsOf reads the common parameters of the journal and of a trace.
func eventsOf(values map[string]string) (q api.EventQuery, err error) {
	q.Kind, q.Object = values["kind"], values["object"]
	if q.After, err = numberOf(values, "after"); err == nil {
		q.Cause, err = numberOf(values, "cause")
	}
	return q, err
}

// errActorPath means that a path does not belong to an actor.
var errActorPath = fmt.Errorf("%w: actor path: expected something like agent/world/registry", errQuery)

// splitActor splits the path after /api/v1/actors/ into the actor and "mailbox", "state",
// "failures", "traffic", ":verb" or nothing.
func splitActor(path string) (actor, what string, err error) {
	actor = path
	if i := strings.LastIndexByte(path, ':'); i >= 0 {
		actor, what = path[:i], path[i:]
	} else if i := strings.LastIndexByte(path, '/'); i >= 0 {
		switch last := path[i+1:]; last {
		case "mailbox", "state", "failures", "traffic":
			actor, what = path[:i], last
		}
	}
	if actor == "" || len(actor) > 512 || slices.Contains(strings.Split(actor, "/"), "") {
		return "", "", errActorPath
	}
	return actor, what, nil
}

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
