// Package deploy has the tests of what deploy/ gives to an administrator: manifests and their
// overlays are rendered as kubectl renders them and sent to a real API server (server-side dry run,
// strict fields), their flags and configuration to the agent; the admission policies refuse and
// admit on it; the expressions of the alerts are evaluated by Prometheus' engine.
package deploy
