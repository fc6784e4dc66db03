// Package consul is the source that reads the services of a Consul datacenter over its HTTP API.
//
// Three blocking queries wait for changes: of the names in the catalog, of the critical checks, and
// of the nodes. A service is read at once if it is new, if one of its checks became critical or
// stopped being critical, or if the address of its node changed. For any other change Consul does
// not name the service. Then a sweep reads all services again, sixteen at a time. Sweeps take at
// most a tenth of the time; while the catalog rests, up to half a minute of sweep time is saved up.
// A catalog at rest costs three requests in half a minute. A new instance of a known service is
// seen within a tenth of a second with a few hundred services, and within some seconds with
// thousands. With thousands of services that change all the time, it is seen within half a minute.
//
// A blocking query for each service would need a connection for each service. A Consul agent allows
// a client 200 connections.
//
// An instance has Service.Address, else Node.Address, and Service.Port. Its worst check decides:
// passing and warning are Ready, critical is NotReady, maintenance is Terminating. The service
// named consul is left out, and so are instances with or without certain tags.
//
// A snapshot is complete if the last query of the names succeeded. An answer that Consul filtered
// by ACL, or gave without a leader, is a failure. A service that cannot be read is Unknown, and the
// others go on. A service without any instance in Consul is Unknown until the next answer with the
// names. Otherwise a Consul that restarted empty would take the instances of services before the
// gate holds back the services. Token and certificates are read from their files again, so they may
// rotate.
//
// The server is not trusted. An answer is decoded as it arrives, one element at a time. An answer
// above a limit counts as a failed read of the service or the list. Few large answers are read at
// the same time. The number of instances and the length of their texts limit the memory of all
// services. An error has the status code and a text of this package, and no other text of the
// server.
//
// Run owns the state. Its queries run in goroutines that report over one channel and end before Run
// returns.
package consul
