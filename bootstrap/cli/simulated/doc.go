// Package simulated has the commands that need a simulated VPP or simulated actors: demo, simulator
// and chaos simulate. The image of the agent is built without them.
//
// The demo runs an agent in one process and verifies it. It has an embedded etcd, a simulated VPP
// behind a real binary-API socket, a small cluster from YAML, and a connector that adds the
// services of a catalog. It sends probe packets and compares their destinations with the model of
// Kubernetes. It kills actors and counts the requests to VPP that follow. Until its end it owns the
// agent, the connector and a temporary directory.
package simulated
