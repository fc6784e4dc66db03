// Package node has the commands that run until a signal, the agent and the connector, with their
// log and their memory limit. It also has the commands that connect to VPP, with or without an
// agent: capture, cleanup and version. When a command returns, it has stopped everything that it
// started.
package node
