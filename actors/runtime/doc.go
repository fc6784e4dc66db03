// Package runtime is what Troupe puts around protoactor-go: of that it uses PIDs, the process registry, the actor context and the life
// cycle. Mailbox, supervision, timers, goroutines, requests from outside, books and simulation are here, on protoactor's public
// interfaces, because the built-in ones have reproduced defects (pitfalls_test.go goes through them).
//
//	System      the tree: SpawnRoot, Send, Ask, Snapshot, Kill, Shutdown
//	Behaviour   what an actor does: Start, Receive, Stop, one value for each incarnation
//	Context     what a Behaviour sees: sending, timers (After), owned goroutines (Go, Post), Ready
//	Ordered     supervisor of a fixed list: ordered start with a barrier, rest-for-one restarts
//	Dynamic     supervisor of named children that come and go, with quarantine
//	Mailbox     queue with latest-wins slots, gate, and the books of the actor
//	Sim         seeded simulation on one goroutine, with virtual time
//
// # Who may call what
//
// System, Mailbox and the function that Context.Post returns are safe from any goroutine. A Context belongs to the goroutine that runs Start,
// Receive or Stop, which never run concurrently for one actor. Only package actors and what wires it import this package, and only they
// know protoactor.
//
// # Delivery
//
// Messages of one sender to one receiver are handled in the order sent. A message with a CoalesceKey removes the pending one of its key and goes
// to the end: only superseded values are missing, and no value overtakes what its sender sent before it. A key that is updated faster than
// its mailbox drains waits until the updates pause or the rest is handled. That is harmless: each pending value would have been superseded anyway,
// the other keys are handled meanwhile, and only a mailbox that never empties delays the key for longer than one round of its keys.
//
// System messages overtake user messages. Nothing blocks and no queue is bounded: memory is bounded by the number of keys. The message that
// an actor fails on is lost, everything else in its mailbox survives the restart. What an actor has not handled when it stops is lost,
// counted and shown as a dead letter. Therefore every flow must be level-triggered, and every message may be lost.
//
// # Incarnations
//
// An incarnation ends at the instant it fails, not when it is replaced: its timers are cancelled, the contexts of its goroutines end, and
// nothing it has posted to itself arrives any more, also what waits in the mailbox already. User messages wait from then on until the
// Start of the next incarnation has returned. Stop is called in any case, just before the next incarnation or the end of the actor.
//
// # Shutdown
//
// System.Shutdown tells the root actors to stop; each stops its children and ends after them, siblings at the same time. It waits for
// actors and goroutines as long as its context allows and names who is left. An idle actor owns no goroutine, so that nothing else has to
// end. Nothing outside of a System that was shut down refers to it but the PIDs, Mailboxes and Post functions that somebody kept, and until they
// arrive the messages that a NetworkHook has made late: the next collection frees it.
package runtime
