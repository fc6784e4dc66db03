// Package apiserver has the requests that the agent and the connector make to the API server, and
// no others: it lists and watches what kube/informers needs, writes events (kube/events), keeps
// Leases (cluster), and keeps Services and EndpointSlices of a namespace (kube/connector). The
// clientset of client-go would bring the types of every API group: 12 MB of binary and 7 MB of
// memory.
//
// New makes a Client, which package bootstrap hands to those who use it. All parts of a Client
// share connections, rate limit and transport, which judges each request and goes to another
// address of the API server when one fails. The Client holds no other state and starts no
// goroutine; the context of a request ends it.
package apiserver
