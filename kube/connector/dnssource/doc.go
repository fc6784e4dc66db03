// Package dnssource is the source that reads one service from the domain name system;
// docs/connector.md says how.
//
// Each query has a random ID and a socket of its own; a message that does not answer its question
// is ignored. After a failure the look-up is tried again after 5 s, doubled up to a minute. IPv4
// and IPv6 addresses are equal. At most 100 targets of SRV records are used.
//
// One goroutine owns a Source, asks the servers and publishes. It ends at once with its context,
// even during a query.
package dnssource
