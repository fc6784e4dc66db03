package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits of pages.
const (
	// DefaultLimit is the number of items of a page whose size was not asked for.
	DefaultLimit = 100
	// MaxLimit is the largest page.
	MaxLimit = 1000
)

// errQuery is matched by errors about the query of a request.
var errQuery = errors.New("bad query")

// listQuery selects, orders and cuts a list of actors or services.
type listQuery struct {
	limit  int
	cursor *cursor
	// sort is the name of an order; "" = the natural one.
	sort string
	// filters hold the values of the filter parameters that were given.
	filters map[string]string
}

// cursor is the place where a page ended: the last item's sort value and its key, so that items that come and go between two pages neither
// repeat nor hide others.
type cursor struct {
	Sort  string `json:"s,omitempty"`
	Value uint64 `json:"v,omitempty"`
	Key   string `json:"k"`
}

// encode returns the cursor as it stands in a URL.
func (c cursor) encode() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic("api: " + err.Error()) // two strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeCursor(text string) (*cursor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: cursor: not one of ours", errQuery)
	}
	c := &cursor{}
	if err := json.Unmarshal(raw, c); err != nil || c.Key == "" {
		return nil, fmt.Errorf("%w: cursor: not one of ours", errQuery)
	}
	return c, nil
}

// parameters reads the query of a URL strictly: a parameter that is unknown or stands twice is an error, because it would be a filter that
// does not filter.
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
			return nil, fmt.Errorf("%w: parameter %q stands twice", errQuery, name)
		}
		out[name] = all[0]
	}
	return out, nil
}

// limitOf reads the size of a page.
func limitOf(values map[string]string) (int, error) {
	text, given := values["limit"]
	if !given {
		return DefaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxLimit {
		return 0, fmt.Errorf("%w: limit %q is not a number from 1 to %d", errQuery, text, MaxLimit)
	}
	return n, nil
}

// parseList reads the query of a list with these orders and filters.
func parseList(raw string, orders, filters []string) (*listQuery, error) {
	values, err := parameters(raw, append([]string{"limit", "cursor", "sort"}, filters...)...)
	if err != nil {
		return nil, err
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
			return nil, fmt.Errorf("%w: cursor: of a list with another order", errQuery)
		}
	}
	return q, nil
}

// parseEvents reads the query of the journal.
func parseEvents(raw string) (EventQuery, error) {
	values, err := parameters(raw, "limit", "before", "after", "cause", "kind", "object")
	if err != nil {
		return EventQuery{}, err
	}
	q := EventQuery{Kind: values["kind"], Object: values["object"]}
	if q.Limit, err = limitOf(values); err != nil {
		return EventQuery{}, err
	}
	if q.After, err = numberOf(values, "after"); err == nil {
		q.Cause, err = numberOf(values, "cause")
	}
	if err != nil {
		return EventQuery{}, err
	}
	if text, given := values["before"]; given {
		if q.Before, err = strconv.ParseUint(text, 10, 64); err != nil || q.Before == 0 {
			return EventQuery{}, fmt.Errorf("%w: before %q is not the number of an event", errQuery, text)
		}
	}
	return q, nil
}

// errActorPath means a path of an actor that cannot be one.
var errActorPath = fmt.Errorf("%w: actor path: expected something like agent/world/registry", errQuery)

// splitActor takes the path behind /api/v1/actors/ apart: the actor, and "mailbox", "state", "failures", ":verb" or nothing.
func splitActor(path string) (actor, what string, err error) {
	actor = path
	if i := strings.LastIndexByte(path, ':'); i >= 0 {
		actor, what = path[:i], path[i:]
	} else if i := strings.LastIndexByte(path, '/'); i >= 0 {
		switch last := path[i+1:]; last {
		case "mailbox", "state", "failures":
			actor, what = path[:i], last
		}
	}
	if actor == "" || len(actor) > 512 || slices.Contains(strings.Split(actor, "/"), "") {
		return "", "", errActorPath
	}
	return actor, what, nil
}
