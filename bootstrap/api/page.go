package api

import (
	_ "embed"
	"slices"
)

// Limits of pages.
const (
	// DefaultLimit is the number of items of a page without ?limit=.
	DefaultLimit = 100
	// MaxLimit is the largest page.
	MaxLimit = 1000
)

// Page is a part of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	// Next is the cursor of the next page; "" = this is the last one.
	Next string `json:"next,omitempty"`
	// Total counts the items of all pages.
	Total int `json:"total"`
}

// Paged is a resource with a list in pages and further fields: it embeds a Page. A Backend has the
// whole list, and sets Items only.
type Paged[T, I any] interface {
	*T
	List() *Page[I]
}

// List satisfies Paged.
func (p *Page[T]) List() *Page[T] { return p }

// Error is the body of every error.
type Error struct {
	Error string `json:"error"`
}

// description is the OpenAPI document of the agent. A test makes it from the types and compares it
// with the handlers.
//
//go:embed openapi.json
var description []byte

// OpenAPI returns the description of the API, an OpenAPI 3.1 document in JSON.
func OpenAPI() []byte { return slices.Clone(description) }
