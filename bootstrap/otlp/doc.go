// Package otlp sends traces of changes to an OpenTelemetry collector: one trace for each change of
// a service, from the event of the API server until VPP holds it, with a span for each step. The
// journal already ties the steps together by their cause, so traces cost actors nothing: an
// Exporter reads the journal once a second. Without an endpoint there is no Exporter.
//
// It writes OTLP over HTTP in JSON by itself: that is one small document, and the libraries of
// OpenTelemetry would be three more dependencies.
package otlp
