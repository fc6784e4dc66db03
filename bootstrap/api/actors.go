package api

import (
	"encoding/json"
	"time"
)

// Actor is one actor with its numbers.
type Actor struct {
	Path string `json:"path" column:"ACTOR" link:"/actors/"`
	Kind string `json:"kind" column:"KIND,wide"`
	// State is the first of these that applies: stopping, quarantined (a service that failed
	// too often), backoff (it failed and is restarted after a delay), suspended (it failed and
	// its supervisor has not decided yet), held (its mailbox is closed, by the verb suspend or
	// while an earlier sibling restarts), starting (not ready yet), running (it handles a
	// message), idle.
	State string `json:"state" column:"STATE"`
	// Incarnation counts its starts, from 1.
	Incarnation uint64 `json:"incarnation" column:"INCARNATION,wide"`
	// Pending is the number of messages in the mailbox, Received the number of all posted
	// messages, Coalesced the number of messages that replaced a pending message.
	Pending   uint64 `json:"pending" column:"PENDING"`
	Received  uint64 `json:"received" column:"RECEIVED,wide"`
	Coalesced uint64 `json:"coalesced"`
	// Restarts and Failures count since the start of the agent.
	Restarts uint64 `json:"restarts" column:"RESTARTS"`
	Failures uint64 `json:"failures" column:"FAILURES"`
	// BusySeconds is the time spent handling messages.
	BusySeconds float64 `json:"busySeconds" column:"BUSY"`
	// LastMessage is the type of the latest message.
	LastMessage string `json:"lastMessage,omitempty"`
	// Since is the start of the incarnation.
	Since time.Time `json:"since,omitzero"`
	// LastFailure is one line; "" = none.
	LastFailure string `json:"lastFailure,omitempty" column:"LAST FAILURE"`
	// MostPending is the largest number of messages that ever waited. OldestSeconds is the
	// waiting time of the message that has waited longest.
	MostPending   uint64  `json:"mostPending,omitempty"`
	OldestSeconds float64 `json:"oldestSeconds,omitempty"`
	// Handling is the type of the message that the actor is handling, HandlingSeconds the time
	// so far; "" = none.
	Handling        string  `json:"handling,omitempty"`
	HandlingSeconds float64 `json:"handlingSeconds,omitempty"`
	// Discarded counts messages that were dropped because the actor stopped or too many waited.
	Discarded uint64 `json:"discarded,omitempty"`
	// Strategy of a supervisor: one-for-one restarts only the child that failed, rest-for-one
	// also the children behind it; "" = no supervisor.
	Strategy string `json:"strategy,omitempty"`
	// Budget is the number of failures of its children that a supervisor tolerates within its
	// window before it fails itself. BudgetLeft is the number that it still tolerates; -1 = any
	// number.
	Budget     int `json:"budget,omitempty"`
	BudgetLeft int `json:"budgetLeft,omitempty"`
}

// Mailbox is the mailbox of an actor.
type Mailbox struct {
	Path string `json:"path"`
	// Held is true while the mailbox is closed by suspend.
	Held bool `json:"held"`
	// Messages are the pending ones, the next one first, at most MaxLimit; Pending counts all.
	Pending  int       `json:"pending"`
	Messages []Waiting `json:"messages"`
}

// Waiting is one message in a mailbox.
type Waiting struct {
	Type string `json:"type" column:"TYPE"`
	// Key of coalescing: a new message replaces a pending one of the same key; "" = it is not
	// coalesced.
	Key string `json:"key,omitempty" column:"KEY"`
	// AgeSeconds is its waiting time. With a key, it counts from the first value that the actor
	// has not handled.
	AgeSeconds float64 `json:"ageSeconds" column:"AGE"`
	// Sender is the actor that expects an answer; "" = none.
	Sender string `json:"sender,omitempty" column:"FROM"`
	// Body is the content. It is left out of internal messages, of messages above 4 KiB, behind
	// the first 100 messages, and on TCP with api.redactMessages.
	Body json.RawMessage `json:"body,omitempty" column:"CONTENT,wide"`
}

// Traffic counts the messages that the actors of one kind have handled and sent since the start of
// the agent.
type Traffic struct {
	Kind string `json:"kind"`
	// Messages are the types of handled messages, the most frequent first.
	Messages []MessageTraffic `json:"messages"`
	// From are the kinds that have sent messages to actors of this kind, To the kinds that have
	// received messages from them, by the number of messages.
	From []KindTraffic `json:"from"`
	To   []KindTraffic `json:"to"`
}

// MessageTraffic is one type of message.
type MessageTraffic struct {
	Type  string `json:"type" column:"TYPE"`
	Count uint64 `json:"count" column:"HANDLED"`
	// P50Seconds and P99Seconds are the times below which 50 and 99 of 100 messages were
	// handled, rounded up to a power of two of nanoseconds.
	P50Seconds float64 `json:"p50Seconds" column:"P50"`
	P99Seconds float64 `json:"p99Seconds" column:"P99"`
}

// KindTraffic is the number of messages from or to a kind of actors.
type KindTraffic struct {
	Kind  string `json:"kind"`
	Count uint64 `json:"count"`
}

// DeadLetters are messages that were not delivered.
type DeadLetters struct {
	// Count is their number since the start of the agent, Items the latest 64, the newest
	// first.
	Count uint64       `json:"count"`
	Items []DeadLetter `json:"items"`
}

// DeadLetter is one message that was not delivered.
type DeadLetter struct {
	Time time.Time `json:"time" column:"TIME"`
	Type string    `json:"type" column:"MESSAGE"`
	// To is the path of the receiver, Sender the path of the actor that expects an answer; "" =
	// none.
	To     string `json:"to" column:"TO"`
	Sender string `json:"sender,omitempty" column:"FROM"`
	// Reason is one of: no such actor, actor has stopped, discarded on stop, too many were
	// waiting.
	Reason string `json:"reason" column:"WHY"`
}

// Failure is one failure of an actor.
type Failure struct {
	Time        time.Time `json:"time" column:"TIME"`
	Incarnation uint64    `json:"incarnation" column:"INCARNATION"`
	// Message is the type of the message that the actor was handling.
	Message string `json:"message,omitempty" column:"MESSAGE"`
	// Decision of the supervisor: restart, quarantine, escalate.
	Decision string `json:"decision,omitempty" column:"DECISION"`
	// Reason is the panic or error.
	Reason string `json:"reason" column:"REASON"`
	Stack  string `json:"stack,omitempty"`
}

// TreeNode is an actor with its descendants.
type TreeNode struct {
	Actor
	// Name is the last part of the path.
	Name string `json:"name"`
	// Below counts all descendants, including actors that Children leaves out.
	Below    int         `json:"below"`
	Children []*TreeNode `json:"children,omitempty"`
}
