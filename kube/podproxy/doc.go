// Package podproxy reaches the agent of a node through the proxy of the API server, for a command
// outside of the node. The user needs the right to list pods and to get pods/proxy in the namespace
// of the agents. The API server must reach the HTTP address of the agent, so it cannot be loopback.
package podproxy
