// Package agent has the stories of the control plane tier: the agent as a process, with a token of
// the service account of deploy/kubernetes/base and exactly its rights, between a real API server
// and a simulated VPP in a process of its own.
//
// Each story has its own control plane, VPP and agent. What VPP holds is asked of the simulator
// (number of rows) and of the agent (rows of a service, as it has read or written them).
package agent
