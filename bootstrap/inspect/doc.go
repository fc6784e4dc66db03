// Package inspect answers the questions of the API about the actors of a system, for the agent and
// the connector. It reads their mailboxes and sends no message, except for State, so that it works
// while actors hang. It has no state; any goroutine may call it.
package inspect
