// Package otlp sends traces of changes to an OpenTelemetry collector: one trace for each change of
// a service, from the event of the API server until VPP holds it, with a span for each step. The
// journal already joins the steps by their cause, so traces cost the actors nothing: an Exporter
// reads the journal once a second. Without an endpoint the agent makes no Exporter. Run blocks
// until its context ends.
//
// The package encodes OTLP over HTTP in JSON itself. The document is small, and the libraries of
// OpenTelemetry would be three more dependencies.
package otlp
