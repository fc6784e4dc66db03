// Package health is the healer: readiness of the node from the health of its parts, and the
// escalation for parts that stay wrong.
//
// The healer decides with Escalation, which is plain data without a clock, and carries the steps
// out by messages. Readiness is the one value that is published outside of messages, so that
// /readyz has an answer even when actors hang; any goroutine may read it.
//
// The healer is started before the parts that report to it. Shutdown makes the node not ready;
// nothing else follows from it.
package health
