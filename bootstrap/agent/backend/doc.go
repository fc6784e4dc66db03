// Package backend answers what the HTTP servers and the control socket of an agent are asked: it
// asks the actors, and puts their answers into the words of the API.
//
// A Backend has no state of its own and starts nothing, so it needs no shutdown: after the end of
// the actors its answers are errors. Its methods are safe from any goroutine. A query that an actor
// answers from its memory is limited to 2 s; one that reads VPP, and a command, by its deadline.
//
// Package agent makes it; nothing else does.
package backend
