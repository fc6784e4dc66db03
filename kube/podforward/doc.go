// Package podforward reaches the agent of a node through the API server, for a command outside of
// the node. The user needs the right to list pods and to create pods/portforward in the namespace
// of the agents. The kubelet connects to the loopback of the pod, which is the node's for an agent,
// so the agent listens nowhere else. The credentials go to the API server only.
package podforward
