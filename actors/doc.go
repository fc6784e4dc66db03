// Package actors puts the troupe together: which actors there are, in which order they start, and
// what each is given. It has no behaviour of its own; each concern is a package below it.
//
//	desired      what this node should serve: watch, registry, one actor per service, node sync
//	render       the driver of every renderer; render/nat44, render/cnat and render/routes are its
//	             adapters
//	interfaces   frontends and backends, derived from VPP; interfaces of pods by command
//	external     configuration from outside of Kubernetes, in layers
//	sessions     the table of NAT sessions
//	link, audit  the connection to VPP; the schedule of drift checks
//	health       readiness and escalation
//	status       journal, introspection, what is published outside of the process
//	command      commands as transactions
//	runtime      mailbox, supervision, time
//	chaos        the troupe under failures
//
// docs/architecture.md has the tree and how a change travels through it.
//
// # Where equality is looked at
//
// A change ends where it makes no difference. Each comparison on its way has a reason of its own:
//
//	store      the input of a service: most updates are of metadata, and end before anything is
//	           copied or sent (package kube)
//	registry   the input of a service: the local mirror and the source after it say the same in
//	           different messages
//	service    the hash of its view: endpoints of other nodes mostly change nothing here. The view
//	           is rendered nevertheless, because barriers count generations; there is no record
//	renderer   the hash of the view: a repeated Render, or one of a newer generation, needs no
//	           plan, only an answer
//	claims     each object that is wanted: of a large service only what changed is looked at
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
