// Package catalog is the model of a catalog outside of Kubernetes: services, their ports and their
// instances, with the sources that read it. It also decides which parts may be used: Clean keeps a
// Snapshot within limits, Policy refuses addresses, Label and Assign make names of Services.
//
// A catalog is untrusted input. A registration at the source must not exhaust the connector, lead
// clients of the cluster to protected addresses, or take the name of another service. A refused
// part is a Problem, never an error: only the bad instance is left out, and all others stay.
//
// One goroutine owns a source, asks and publishes. It ends with its context, and ends its own
// goroutines before. Everything else is pure. A published Snapshot belongs to its receiver and is
// not changed any more. docs/connector.md describes the sources for users.
//
// # YAML
//
// YAML reads a YAML or JSON file, or the files of a directory:
//
//	services:
//	- name: billing
//	  ports: [{name: http, port: 80, protocol: TCP}]
//	  instances: [{address: 192.0.2.10, ports: {http: 8080}, healthy: true}]
//
// Decoding is strict: a file with an unknown field or an unusable value is not used. Each error is
// a problem with its line, and the snapshot is incomplete. Incomplete snapshots delete nothing, so
// the gate keeps the last good state of that file, also over a restart; the source itself keeps no
// state. A service that moves from one file to another does not vanish.
//
// # DNS
//
// DNS reads one service from the domain name system. Each query has a random ID and a socket of its
// own; a message that does not answer its question is ignored. After a failure the look-up is tried
// again after 5 s, doubled up to a minute. IPv4 and IPv6 addresses are equal. At most 100 targets
// of SRV records are used.
//
// # Consul
//
// Consul reads the services of a datacenter over its HTTP API. A blocking query waits for
// changes of the names in the catalog, and one for changes of each service: its instances, their
// checks, and the addresses of their nodes. Each of these queries needs a connection, and Consul
// allows a client 200. Above 128 services each is read again and again, sixteen at a time, with a
// pause of 2 ms for each service.
//
// A service without any instance in Consul is Unknown until the next answer with the names.
// Otherwise a Consul that restarted empty would take the instances of services before the gate
// holds back the services.
//
// The server is not trusted. An answer is decoded as it arrives, one element at a time. The number
// of instances and the length of their texts limit the memory of all services. An error has the
// status code and a text of this package, and no other text of the server.
package catalog
