// Command example-cni is an example: the smallest CNI plugin whose pods talk through VPP, so that
// Troupe can be tried on a cluster that has nothing yet. It is not meant for production.
//
// It is one program with three parts, which know each other by files in /var/lib/cni/example-cni
// and by VPP:
//
//	(CNI_COMMAND is set)  the plugin: a veth for each pod, its host end in VPP, its addresses
//	example-cni node      beside VPP: the links of VPP to the network and to the host, routes to
//	                      other nodes; installs the plugin and repairs a VPP that has restarted
//	example-cni vpp       removes what a killed VPP has left behind and becomes VPP
//
// Every veth leads to one address of each family. Both ends know each other by static neighbours:
// the pod has a default route to a gateway that only its static neighbour makes reachable, VPP has
// one route to the pod. ARP and neighbour discovery are not used.
//
// The host itself is attached like a pod, by the link vpp-host, so that the kubelet reaches pods.
// The first usable address of the node's pod CIDR belongs to VPP, the second one to the host.
package main
