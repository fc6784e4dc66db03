// Package api is the HTTP server of the agent: health, metrics and JSON under /api/v1/. It asks a Backend, which the agent implements over
// its actors; a handler never touches an actor.
//
// # Two listeners
//
// The TCP listener is read-only. Calls that change something are taken only on the unix control socket (mode 0600), where the file system
// says who may call; on TCP they are answered with 403. The control socket answers everything that the TCP listener does.
//
// # Answers
//
// Everything under /api/v1/ is JSON. A list is {"items": [...]}, in pages where it can be long: "next" then holds the cursor of the next
// page, "total" the number of all items. An error is {"error": "..."} with a status that says whose fault it is:
//
//	400 the request cannot be understood        409 the state does not allow it now
//	403 not on this listener, or never          501 this agent cannot do that
//	404 no such thing                           503 the agent cannot say now
//	405 not with this method (see Allow)        504 the agent did not answer in time
//
// # Concurrency
//
// Each request runs in its own goroutine of net/http with a deadline; the Backend must be safe for concurrent use. A panic of a handler is
// answered with 500 and logged.
//
// # Shutdown
//
// Serve returns when its context ends: listeners close, requests under way get a moment, then their connections are cut. The socket file
// is removed.
package api
