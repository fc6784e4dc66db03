// Package demo runs an agent in one process and verifies it, with an embedded etcd, a simulated VPP
// behind a real binary-API socket, and a small cluster from YAML. A connector adds the service of a
// catalog to it. The demo programs every service. It sends probe packets and compares their
// destinations with the endpoints that Kubernetes asks for. It kills actors and counts the requests
// to VPP that follow.
//
// Run returns when the verification is done (Options.Exit) or when its context ends.
package demo
