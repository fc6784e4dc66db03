package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// perPage is the number of items on one page of a list.
const perPage = 100

// list is one page of a list.
type list[T any] struct {
	Items []T
	Total int
	// From is the number of the first item, from 1.
	From int
	// Query has the filters. Before and After are the queries of the neighbouring pages; "" =
	// there is no such page.
	Query         url.Values
	Before, After string
}

// To is the number of the last item.
func (l *list[T]) To() int { return l.From + len(l.Items) - 1 }

// Is reports whether a filter has a value.
func (l *list[T]) Is(name, value string) bool { return l.Query.Get(name) == value }

// paged returns the page ?page= of a list, from 1. Unlike the cursors of the API, page numbers let
// a reader jump; an item that comes or goes meanwhile only moves the others.
func paged[T any](r *http.Request, all []T, filters ...string) (*list[T], error) {
	query, err := parameters(r, append(filters, "page")...)
	if err != nil {
		return nil, err
	}
	number := 1
	if text := query.Get("page"); text != "" {
		if number, err = strconv.Atoi(text); err != nil || number < 1 || number > 1+len(all)/perPage {
			return nil, fmt.Errorf("%w: page %q is not one of %d", errQuery, text, 1+len(all)/perPage)
		}
	}
	from := (number - 1) * perPage
	l := &list[T]{Items: all[from:min(from+perPage, len(all))], Total: len(all), From: from + 1, Query: query}
	to := func(page int) string {
		query.Set("page", strconv.Itoa(page))
		defer query.Del("page")
		return "?" + query.Encode()
	}
	if number > 1 {
		l.Before = to(number - 1)
	}
	if from+perPage < len(all) {
		l.After = to(number + 1)
	}
	return l, nil
}

// parameters reads the parameters of a request. An unknown parameter is an error, because the
// reader would believe that the list is filtered.
func parameters(r *http.Request, names ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errQuery, err)
	}
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for name, values := range query {
		if !known[name] || len(values) != 1 {
			return nil, fmt.Errorf("%w: parameter %q", errQuery, name)
		}
		if values[0] == "" { // an empty field of a form
			query.Del(name)
		}
	}
	return query, nil
}
