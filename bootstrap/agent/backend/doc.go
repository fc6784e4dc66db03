// Package backend implements api.Backend for an agent: it queries the actors and translates their
// answers into the types of the API. Only package agent makes a Backend.
//
// A Backend has no state and starts nothing, so it needs no shutdown: after the end of the actors
// its answers are errors. Its methods are safe from any goroutine. A query that an actor answers
// from its memory is limited to 2 s. A query that reads VPP, and a command, end at the deadline of
// the caller.
package backend
