// Package consul is the source that reads the services of a Consul datacenter over its HTTP API;
// docs/connector.md says how.
//
// Three blocking queries wait for changes: of the names in the catalog, of the critical checks, and
// of the nodes. A service is read at once if it is new, if one of its checks became critical or
// stopped being critical, or if the address of its node changed. For any other change Consul does
// not name the service. Then a sweep reads all services again, sixteen at a time. A blocking query
// for each service would need a connection for each service, and Consul allows a client 200. While
// the catalog rests, up to half a minute of sweep time is saved up.
//
// A service without any instance in Consul is Unknown until the next answer with the names.
// Otherwise a Consul that restarted empty would take the instances of services before the gate
// holds back the services.
//
// The server is not trusted. An answer is decoded as it arrives, one element at a time. The number
// of instances and the length of their texts limit the memory of all services. An error has the
// status code and a text of this package, and no other text of the server.
//
// Run owns the state. Its queries run in goroutines that report over one channel and end before Run
// returns.
package consul
