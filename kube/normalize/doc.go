// Package normalize turns API objects (core/v1 Service, Node, Pod; discovery.k8s.io/v1
// EndpointSlice) into the messages of world.proto. It is pure: no clock, no I/O, no logger, no
// state; every function may be called from any goroutine and never panics, whatever the object
// contains.
//
// An object is never refused because a part of it is bad. If it is safe, only the bad part is left
// out, and one messages.ObjectError names it: a bad external IP costs that address, a bad port
// number that port. If leaving out only the bad part could admit unwanted clients, more is left
// out: load balancer addresses without any readable source range are not served.
//
// The result holds addresses in canonical text form (RFC 5952, no leading zeros, IPv4-mapped IPv6
// as IPv4) and resolves nil pointers as the API documents them. It does not decide what is served;
// package kube/service does. Only Selected* mirrors the selectors with which the Kubernetes source
// asks the API server, so that every source delivers the same objects.
//
// The fields follow kube-proxy 1.36. If kube-proxy tolerates a value that the API server would
// refuse, so does this package.
package normalize
