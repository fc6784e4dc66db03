// Package node has the commands that run on a node and connect to VPP, with or without an agent:
// capture, cleanup and version. Each closes its connection to VPP before it returns.
package node
