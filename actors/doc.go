// Package actors puts the troupe together: the actors, the order of their start, and their
// configuration. It has no behaviour of its own; each concern is a package below it.
//
//	desired      what this node should serve: registry, one actor per service, node sync
//	render       the driver of every renderer; render/nat44, render/cnat and render/routes are its
//	             adapters
//	interfaces   frontends and backends, derived from VPP; interfaces of pods by command
//	external     configuration from outside of Kubernetes, in layers
//	sessions     the table of NAT sessions
//	link         the connection to VPP
//	health       readiness and escalation
//	status       journal, introspection, what is published outside of the process
//	command      commands as transactions
//	runtime      mailbox, supervision, time
//	chaos        the troupe under failures
//
// docs/architecture.md has the tree, the way of a change through it, and the reason of each
// comparison on that way.
//
// # Ownership
//
// A field of an actor belongs to its Start, Receive and Stop, which never run at the same time.
// Other actors get values by messages. Input and output run in goroutines that the actor owns
// (Context.Go); they post results back and end with the incarnation that started them. Only
// readiness and the age of pending changes are published outside of messages, as atomic values, so
// that health checks are answered even when actors hang.
//
// # Shutdown
//
// runtime.System.Shutdown stops the tree from the leaves. Nothing is removed from VPP by it: VPP
// goes on forwarding.
package actors
