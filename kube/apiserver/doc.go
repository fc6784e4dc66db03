// Package apiserver has exactly the requests that the agent and the connector send to the API
// server. It lists and watches objects (kube/informers), writes events (kube/events), keeps Leases
// (cluster), keeps the Services and EndpointSlices of a namespace (kube/connector), and writes the
// status of Services and AddressPools (kube/allocator). The clientset of client-go would add the
// types of every API group: 12 MB of binary and 7 MB of memory.
//
// New makes a Client, which package bootstrap hands to its users. All parts of a Client share
// connections, rate limit and transport. The transport classifies the outcome of each request, and
// takes another address of the API server when one fails. The Client holds no other state and
// starts no goroutine; the context of a request ends the request. Informers are caches of a few
// kinds of objects, which live as long as their Run.
package apiserver
