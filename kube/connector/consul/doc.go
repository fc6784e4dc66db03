// Package consul is the source that reads the services of a Consul datacenter over its HTTP API.
//
// One blocking query follows the names of the catalog, one for each name its instances, so that a change arrives at once. An instance has
// Service.Address, else Node.Address, and Service.Port. Its worst check decides: passing and warning are Ready, critical is NotReady, maintenance is
// Terminating. The service named consul is left out.
//
// A snapshot is complete if the last query of the names succeeded: an answer that Consul filtered by ACL or gave without a leader is a failure. If
// that of one name fails, that service is Unknown and the others go on. The token is read from its file for each query, so it may rotate.
//
// Run owns the state; the queries are goroutines of it that report over one channel and have ended when Run returns.
package consul
