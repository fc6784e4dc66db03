// Package precheck asks an API server, before an agent runs, whether the agent will get what it
// needs: a version, the rights to list, and nodes whose networks fit the configuration. It also
// looks for kube-proxy. It changes nothing.
package precheck
