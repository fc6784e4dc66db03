// Package server is the HTTP server of the agent: health, metrics and JSON under /api/v1/. Handlers
// call an api.Backend, which the agent implements with queries to its actors. The connector, and
// the archive of a sysdump, are served in the same way. Package apitest has a server for tests.
//
// # Two listeners
//
// The TCP listener is read-only and answers state-changing calls with 403. It answers requests for
// state only if both ends of the connection are on loopback; health and metrics at any address. The
// unix control socket (mode 0600) also serves state-changing calls: the file system decides who may
// connect.
//
// # Limits of the TCP listener
//
// The TCP listener has no authentication. It answers requests whose Host is an IP address,
// localhost or one of Config.AllowedHosts, and 403 otherwise. So a page of another site cannot read
// it by DNS rebinding. A request with an Origin of another host gets 403, too. Its connections are
// limited: above the limit a new one replaces the longest idle one. Clients share a reading of VPP
// for GET /api/v1/diff for some seconds; the control socket reads VPP for each request, one reading
// at a time. Each listener has a limit of traces of its own.
//
// # Answers
//
// Everything under /api/v1/ is JSON. A list is {"items": [...]}, in pages where it can be long:
// "next" then holds the cursor of the next page, "total" the number of all items. An error is
// {"error": "..."} with a status:
//
//	400 the request is invalid                         409 the present state does not allow it
//	403 not on this listener or host, or never         501 this agent does not support it
//	404 the object does not exist                      503 the agent cannot answer at present
//	405 wrong method (see Allow)                       504 the agent did not answer in time
//
// Tree answers about the actors of a system. It reads their mailboxes and sends no message, except
// for State, so that it works while actors hang.
//
// # Concurrency
//
// Each request runs in its own goroutine of net/http with a deadline; the Backend must be safe
// for concurrent use. After a panic of a handler the server answers with 500 and logs it.
//
// # Shutdown
//
// Serve returns when its context ends: it closes the listeners, gives active requests a short time,
// then closes their connections. It removes the socket file.
package server
