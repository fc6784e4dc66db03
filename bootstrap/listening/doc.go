// Package listening knows the ports on which processes of this node listen, so that no service
// takes one of them from the node.
//
// Ports reads the kernel's tables in /proc/net, in the network namespace of the agent, which is the
// node's in a DaemonSet with hostNetwork. The discovery of interfaces reads it as often as the
// interfaces of VPP. It is safe from any goroutine; nothing has to be stopped.
package listening
