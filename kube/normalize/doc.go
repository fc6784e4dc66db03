// Package normalize turns API objects (core/v1 Service, Node, Pod; discovery.k8s.io/v1
// EndpointSlice) into the messages of world.proto. It is pure: no clock, no I/O, no logger, no
// state; every function may be called from any goroutine and never panics, whatever the object
// contains.
//
// An object is never refused because a part of it is bad. The part is left out where that is safe,
// everything else survives, and one messages.ObjectError names the part: a bad external IP costs
// that address, a bad port number that port. Where leaving a part out would open something up, more
// is left out: load balancer addresses whose source ranges cannot be read are not served at all.
//
// The result holds addresses in canonical text form (RFC 5952, no leading zeros, IPv4-mapped IPv6
// as IPv4) and resolves nil pointers as the API documents them. It does not decide what is served:
// that is kube/service. Only Selected* mirrors the selectors with which the Kubernetes source asks
// the API server, so that every source delivers the same.
//
// The fields follow kube-proxy 1.36; where it tolerates what the API server would refuse, so does
// this package.
package normalize
