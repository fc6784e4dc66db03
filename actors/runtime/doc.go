// Package runtime is the actor runtime of Troupe on protoactor-go. It uses protoactor's PIDs,
// process registry, actor context and life cycle. Mailbox, supervision, timers, goroutines,
// requests from outside, statistics and simulation are implemented here, on protoactor's public
// interfaces. The built-in ones have reproduced defects (pitfalls_test.go has a test for each).
//
//	System      the tree: SpawnRoot, Send, Ask, Snapshot, Kill, Shutdown
//	Behaviour   what an actor does: Start, Receive, Stop, one value for each incarnation
//	Context     what a Behaviour sees: sending, timers (After), owned goroutines (Go, Post), Ready
//	Ordered     supervisor of a fixed list: ordered start with a barrier, rest-for-one restarts
//	Dynamic     supervisor of named children that come and go, with quarantine
//	Backoff     exponential delays, with random or repeatable jitter
//	Mailbox     queue that keeps the latest value of each key, gate, and the statistics of the
//	            actor
//	Sim         seeded simulation on one goroutine, with virtual time
//
// # Concurrency
//
// System, Mailbox and the function that Context.Post returns are safe for concurrent use. A Context
// belongs to the goroutine that runs Start, Receive or Stop, which never run concurrently for one
// actor. Only the packages below actors and bootstrap import this package. No other package imports
// protoactor.
//
// # Delivery
//
// Messages of one sender to one receiver are handled in the order sent. A message with a
// CoalesceKey removes the pending one of its key and goes to the end. So only superseded values are
// missing, and no value overtakes an earlier message of its sender.
//
// A key that is updated faster than its mailbox drains waits until the updates pause or the mailbox
// drains. It does no harm. An earlier value would be outdated as soon as it was handled, and the
// other keys make progress meanwhile. The mailbox holds each key once, so it drains after one round
// of its keys unless the actor is overloaded for good. ActorState.OldestAge shows such a wait,
// because a newer value keeps the age of the first one.
//
// System messages overtake user messages. Nothing blocks and no queue is bounded: memory is bounded
// by the number of keys. A failing actor loses the message that it was handling; the rest of its
// mailbox survives the restart. An actor that stops loses its pending messages, which are counted
// and shown as dead letters. Therefore every flow must be level-triggered: Start asks again.
//
// # Incarnations
//
// An incarnation ends at the instant it fails, not when it is replaced. Its timers are cancelled,
// the contexts of its goroutines end, and the mailbox drops its messages to itself. User messages
// wait from then on until Start of the next incarnation has returned. Stop is always called, just
// before the next incarnation or the end of the actor.
//
// # Shutdown
//
// System.Shutdown stops the root actors; each stops its children and ends after them, siblings at
// the same time. It waits for actors and goroutines as long as its context allows and names the
// remaining ones. An idle actor owns no goroutine, so nothing else has to end. The next garbage
// collection frees a System that was shut down, unless a caller keeps a PID, a Mailbox or a Post
// function, or a NetworkHook still delays a message.
package runtime
