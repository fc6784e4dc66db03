// Package run has the commands that run until a signal comes: the agent and the connector, with
// their log and the limits of their memory. Their context ends them; what they start has ended when
// the command returns.
package run
