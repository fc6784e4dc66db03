// Package demo runs an agent in one process and verifies it. It has an embedded etcd, a simulated
// VPP behind a real binary-API socket, a small cluster from YAML, and a connector that adds the
// services of a catalog. The demo sends probe packets and compares their destinations with the
// endpoints that Kubernetes asks for. It kills actors and counts the requests to VPP that follow.
//
// Run returns when the verification is done (Options.Exit) or when its context ends. Until then it
// owns the agent, the connector and a temporary directory.
package demo
