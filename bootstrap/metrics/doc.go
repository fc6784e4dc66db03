// Package metrics holds the Prometheus metrics of the agent: its own, with the prefix troupe_, and those of kube-proxy that dashboards and
// alerts of Kubernetes users read (kubeproxy_), with their names, labels and buckets.
//
// Cardinality is bounded: labels are kinds of actors, renderers, states and address families, never services, pods or addresses.
//
// Metrics has a registry of its own, so that several agents in one process (tests) do not meet. Observing never blocks and is safe from any
// goroutine; what is read only when somebody scrapes comes from functions given to Watch.
package metrics
