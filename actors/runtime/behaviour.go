package runtime

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Behaviour is what an actor does. One value serves one incarnation: a restart makes a new one with
// Spec.New and discards the old one with all its fields. The three methods of one value never run
// concurrently.
//
// A panic in Start or Receive is a failure of the actor: the message is lost, the incarnation is
// over, and the supervisor decides. A panic in Stop is contained, recorded, and changes nothing.
type Behaviour interface {
	// Start is called first. It must not block.
	Start(c *Context)
	// Receive gets one message. It is never called after the incarnation has failed, nor while
	// the actor is stopping. It must not block.
	Receive(c *Context, msg any)
	// Stop is called last, once per incarnation, also after Start or Receive have failed.
	// Timers are stopped and the contexts of goroutines cancelled before it. It must not block.
	Stop(c *Context)
}

// Inspector is a Behaviour that describes its state. A Behaviour without it is described by its
// kind and incarnation.
type Inspector interface {
	// Inspect returns a value for encoding/json. It runs in the actor, like Receive, and the
	// value is encoded before it returns to the mailbox, so it may point into the actor's
	// state.
	Inspect() any
}

// Spec says how to make an actor. Ordered and Dynamic make the Specs of supervisors.
type Spec struct {
	// Kind is the label of metrics: a handful of values, never a service name.
	Kind string
	// New makes the Behaviour of the next incarnation. It must return a new value each time.
	New func() Behaviour
	// Limit is how many user messages wait at most; one more makes the first a dead letter. It
	// is for actors whose messages have no keys and lose value with age. 0 = unlimited: with
	// keys, one message of each key waits.
	Limit int
	// Children are the children of an Ordered supervisor, in the order of their start;
	// read-only.
	Children []Child
}

// Reaction is what an Ordered supervisor does with a child when an earlier sibling fails.
type Reaction int

const (
	// ReactRestart closes the gate of the child at once, and restarts the child when the
	// earlier sibling is ready again. It is for children with handles of the failed
	// incarnation. No pending message is lost.
	ReactRestart Reaction = iota
	// ReactResync leaves the child running and sends it *messages.Resync when the earlier
	// sibling is ready again: it keeps its state and asks again.
	ReactResync
	// ReactNone leaves the child running.
	ReactNone
	// ReactIndependent leaves the child running, and starts it without waiting for earlier
	// siblings.
	ReactIndependent
)

// String is "restart", "resync", "none" or "independent".
func (r Reaction) String() string {
	switch r {
	case ReactRestart:
		return "restart"
	case ReactResync:
		return "resync"
	case ReactNone:
		return "none"
	default:
		return "independent"
	}
}

// Child is one child of an Ordered supervisor.
type Child struct {
	// Name is the last element of the child's path, unique among its siblings; a '/' in it is
	// escaped.
	Name string
	// Spec says how to make the child.
	Spec Spec
	// Reaction is what the supervisor does with the child when an earlier sibling fails.
	Reaction Reaction
}

// Policy is how a supervisor treats failing children. The zero value of a field selects its
// default.
type Policy struct {
	// Budget is how many failures of all children together are tolerated within Window; one
	// more fails the supervisor itself. Default: 10 for Ordered, unlimited for Dynamic, where a
	// burst of independent failures must not restart all children. Negative: unlimited.
	Budget int
	// Window is the sliding window of Budget; default 10 s.
	Window time.Duration
	// BackoffMin is the delay before the first restart; it doubles with each failure. Default 1
	// ms.
	BackoffMin time.Duration
	// BackoffMax caps the delay; default 500 ms for Ordered, 30 s for Dynamic.
	BackoffMax time.Duration
	// Jitter is the part of the delay, 0 to 1, by which it is randomly longer or shorter;
	// default 0.2, negative: none.
	Jitter float64
	// HealthyAfter is how long an incarnation must have lived for its failure to count as the
	// first again; default 1 min.
	HealthyAfter time.Duration
	// QuarantineAfter is how many failures of one Dynamic child within QuarantineWindow
	// quarantine it; default 3, negative: never.
	QuarantineAfter int
	// QuarantineWindow is the sliding window of QuarantineAfter; default 5 s.
	QuarantineWindow time.Duration
	// QuarantineFor is how long the child stays suspended, unless a Nudge with a higher
	// generation comes; default 30 s.
	QuarantineFor time.Duration
}

// withDefaults fills in what Policy leaves open.
func (p Policy) withDefaults(budget int, backoffMax time.Duration) Policy {
	p.Budget = cmp.Or(p.Budget, budget)
	p.Window = cmp.Or(p.Window, 10*time.Second)
	p.BackoffMin = cmp.Or(p.BackoffMin, time.Millisecond)
	p.BackoffMax = max(cmp.Or(p.BackoffMax, backoffMax), p.BackoffMin)
	p.Jitter = min(max(cmp.Or(p.Jitter, 0.2), 0), 1)
	p.HealthyAfter = cmp.Or(p.HealthyAfter, time.Minute)
	p.QuarantineAfter = cmp.Or(p.QuarantineAfter, 3)
	p.QuarantineWindow = cmp.Or(p.QuarantineWindow, 5*time.Second)
	p.QuarantineFor = cmp.Or(p.QuarantineFor, 30*time.Second)
	return p
}

// backoff is the part of the policy that Backoff computes.
func (p Policy) backoff() Backoff {
	return Backoff{Min: p.BackoffMin, Max: p.BackoffMax, Jitter: p.Jitter}
}

// EscapeName makes a child name of any key: '/' separates the levels of a path, so in a name it
// becomes '~'. A service key "default/web" becomes "default~web". The rare '~' and '%' are
// percent-encoded, so that different keys have different names.
func EscapeName(key string) string { return escaper.Replace(key) }

// UnescapeName is the inverse of EscapeName. A key without '~' and '%' passes unchanged, so it may
// be applied to a key by mistake.
func UnescapeName(name string) string { return unescaper.Replace(name) }

// Both are immutable and safe for concurrent use.
var (
	escaper   = strings.NewReplacer("%", "%25", "~", "%7E", "/", "~")
	unescaper = strings.NewReplacer("%25", "%", "%7E", "~", "~", "/")
)

// parentPath is the path above, "" for a root actor.
func parentPath(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

// childPath is the path of a child of the actor.
func childPath(c *Context, name string) string { return c.Path() + "/" + EscapeName(name) }

// baseName is the last element of a path.
func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// sortedKeys makes the order of a map repeatable.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
