// Package metrics holds the Prometheus metrics of the agent: its own metrics with the prefix
// troupe_, and the metrics of kube-proxy (kubeproxy_) with their names, labels and buckets. So
// existing dashboards and alerts work.
//
// Cardinality is bounded: labels are kinds of actors, renderers, states and address families, never
// services, pods or addresses.
//
// Metrics has a registry of its own, so that several agents in one process (tests) do not share
// metrics. Observations never block and are safe from any goroutine. A scrape reads state that is
// too costly to track all the time through the functions given to Watch.
//
// An Exporter sends traces of changes to an OpenTelemetry collector: one trace for each change of a
// service, from the event of the API server until VPP holds it, with a span for each step. The
// journal already joins the steps by their cause, so traces cost the actors nothing: the Exporter
// reads the journal once a second. Without an endpoint the agent makes none. The package encodes
// OTLP over HTTP in JSON itself. The document is small, and the libraries of OpenTelemetry would be
// three more dependencies.
package metrics
