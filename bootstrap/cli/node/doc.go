// Package node has the commands that run on a node and ask VPP itself, with or without an agent:
// capture, cleanup and version. Each opens one connection to VPP and closes it before it returns.
package node
