// Package listening knows the ports on which processes of this node listen, so that no service
// takes one of them from the node.
//
// Ports reads the kernel's tables in /proc/net in the network namespace of the agent. In a
// DaemonSet with hostNetwork this is the namespace of the node. The discovery of interfaces reads
// it as often as the interfaces of VPP. Ports is safe from any goroutine and needs no stop.
package listening
