// Package demo runs an agent in one process and verifies it, with an embedded etcd, a simulated VPP
// behind a real binary-API socket, and a small cluster from YAML, to which a connector adds the
// service of a catalog. It programs every service, sends probe packets and compares their
// destinations with those of Kubernetes, kills actors and counts the requests to VPP that follow.
//
// Run returns when the verification is done (Options.Exit) or when its context ends.
package demo
