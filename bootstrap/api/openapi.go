package api

import (
	_ "embed"
	"slices"
)

// description is the OpenAPI document of the agent. A test makes it from the types and compares it
// with the handlers.
//
//go:embed openapi.json
var description []byte

// OpenAPI returns the description of the API, an OpenAPI 3.1 document in JSON.
func OpenAPI() []byte { return slices.Clone(description) }
