// Package dnssource is the source that reads one service from the domain name system. It reads the
// SRV records of _port._tcp.name and the addresses of their targets, or the addresses of a name
// with a fixed port. The service has the first label of the name as its name.
//
// The servers are given by address and asked in their order, over UDP, and over TCP if an answer is
// truncated. Each query has a random ID and a socket of its own; a message that does not answer its
// question is ignored. Answers are refreshed when the shortest TTL in them ends, after 5 s at the
// earliest and 5 min at the latest. A name that does not exist, or has no such records, gives a
// service without instances. Every other failure makes the service Unknown and the snapshot
// incomplete, so that the last state stays in the cluster. The look-up is tried again after 5 s,
// doubled up to a minute.
//
// SRV records are grouped by priority. The group with the lowest priority number that has an
// address is Ready, the others are NotReady; weights are not used. IPv4 and IPv6 addresses are
// equal. At most 100 targets are used.
//
// One goroutine owns a Source, asks the servers and publishes. It ends at once with its context,
// even during a query.
package dnssource
