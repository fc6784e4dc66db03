// Package status keeps what operators look at: the journal of events, introspection, and what is
// published outside of the process (Kubernetes Events, health-check node ports).
//
// The other actors send introspection everything; it never asks one, but for one question at the
// start of an incarnation, so that a look at it disturbs no other actor. It does not take part in
// healing. PendingSince is published outside of messages, like readiness, so that health checks
// have an answer even when actors hang.
//
// Both actors are started before the others, which report to them. What they keep is lost with
// them; introspection gets it again, the journal begins anew with a growing sequence.
package status
