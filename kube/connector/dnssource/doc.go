// Package dnssource is the source that reads one service from the domain name system: the SRV
// records of _port._tcp.name and the addresses of their targets, or the addresses of a name with a
// fixed port. The service is called after the first label of the name.
//
// The servers are given by address and asked in their order, over UDP, and over TCP where an answer
// is truncated. Each query has a random ID and a socket of its own; what does not answer its
// question is ignored. Answers are refreshed when the shortest TTL in them ends, at least after 5 s
// and at most after 5 min. A name that does not exist, or has no such records, is known to be
// empty. Every other failure makes the service Unknown and the snapshot incomplete, so that the
// last state stays in the cluster; it is tried again after 5 s, doubled up to a minute.
//
// Of SRV records the group of the lowest priority that has an address is Ready, the others are
// NotReady; weights are not used. IPv4 and IPv6 addresses count alike. At most 100 targets are
// used.
//
// A Source is run by one goroutine, which owns it, asks and publishes; it ends within a query, as
// that is cut short with its context.
package dnssource
