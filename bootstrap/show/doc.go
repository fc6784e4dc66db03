// Package show converts frontends and rows from messages to the JSON of `troupe plan` and of the
// agent's HTTP server. Field names and values are a stable interface.
//
// It is pure. Lists are never nil, so that JSON always has an array.
package show
