// Package podproxy reaches the agent of a node through the proxy of the API server, for a command
// outside of the node. The user needs the right to list pods and to get pods/proxy in the namespace
// of the agents, and the HTTP address of the agent must be one that the API server reaches, not
// loopback.
package podproxy
