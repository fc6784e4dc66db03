// Package connector tests the catalog connector as a process: against a real control plane, with a
// token that is bound to the rules of deploy/kubernetes/connector, and against a real Consul with a
// proxy in front of it, which spoils answers. TestPackets has both, and an agent with a simulated
// VPP.
package connector
