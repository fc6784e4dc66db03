// Package show holds the public forms of what this node serves: the JSON that `troupe plan` prints and the agent's HTTP server answers,
// made from messages. Field names and words are a stable interface.
//
// It is pure. Lists are never nil, so that a reader always finds an array.
package show
