// Package run has the commands that run until a signal: the agent and the connector, with their log
// and their memory limit. The end of their context ends them. When a command returns, it has
// stopped everything that it started.
package run
