// Package listening finds the ports on which processes of this node listen, so that a service
// cannot take such a port from the node.
//
// Ports reads the kernel's tables in /proc/net in the network namespace of the agent. In a
// DaemonSet with hostNetwork this is the namespace of the node. The discovery of interfaces calls
// Read whenever it reads the interfaces of VPP. Ports is safe from any goroutine and needs no
// shutdown.
package listening
