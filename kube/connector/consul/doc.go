// Package consul is the source that reads the services of a Consul datacenter over its HTTP API.
//
// Three blocking queries say when something has changed: one of the names in the catalog, one of
// the critical checks, one of the nodes. A service that is new, one of whose checks has become
// critical or has ceased to be, or one on a node whose address is another one, is read at once.
// Whatever else changes in the catalog, Consul does not say of which service: all are read again,
// sixteen at a time, for at most a tenth of the time, of which a catalog at rest saves half a
// minute. So a catalog at rest costs three requests in half a minute, and a new instance of a known
// service is seen within the tenth of a second that a few hundred services take, or some seconds
// with thousands; with thousands that change all the time, within half a minute.
//
// An instance has Service.Address, else Node.Address, and Service.Port. Its worst check decides:
// passing and warning are Ready, critical is NotReady, maintenance is Terminating. The service
// named consul is left out, and so are instances with or without certain tags.
//
// A snapshot is complete if the last query of the names succeeded: an answer that Consul filtered
// by ACL or gave without a leader is a failure. If one service cannot be read it is Unknown, and
// the others go on. Token and certificates are read from their files again, so they may rotate.
//
// The server is not trusted. An answer is decoded as it comes, one element at a time, and what
// exceeds a limit ends it: the service, or the list, is then one that could not be read. Few
// answers that are not small are read at the same time. What is kept of all services is limited by
// the number of instances and the length of their texts. An error has the status code and what this
// package says of it, nothing else that the server has sent.
//
// Run owns the state; the queries are goroutines of it that report over one channel and have ended
// when Run returns.
package consul
