// Package status keeps the state for operators: the journal of events, introspection, and the
// values published outside of the process (Kubernetes Events, health-check node ports).
//
// The other actors send introspection everything. It asks them only once, at the start of an
// incarnation after the first, so that reading it disturbs no other actor. It does not take part in
// healing. PendingSince is published outside of messages, like readiness, so that health checks
// have an answer even when actors hang.
//
// Both actors are started before the others, which report to them. A restart loses their content.
// Introspection asks for it again; the journal begins anew with a growing sequence.
package status
