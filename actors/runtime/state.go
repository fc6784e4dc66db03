package runtime

import (
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
)

// State is what an actor is doing, as one word.
type State string

// The states, the first that applies counts.
const (
	// StateStopping: stops when its children have stopped and its handler has returned.
	StateStopping State = "stopping"
	// StateQuarantined: failed too often; its Dynamic supervisor keeps it suspended.
	StateQuarantined State = "quarantined"
	// StateBackoff: failed; the supervisor waits before it restarts it.
	StateBackoff State = "backoff"
	// StateSuspended: failed; the supervisor has not decided yet, or fails itself.
	StateSuspended State = "suspended"
	// StateHeld: its gate is closed, by Hold or by its Ordered supervisor.
	StateHeld State = "held"
	// StateStarting: Start has not returned, or the Ready that its supervisor waits for has not
	// come.
	StateStarting State = "starting"
	// StateRunning: handles a message or is about to.
	StateRunning State = "running"
	// StateIdle: waits for messages.
	StateIdle State = "idle"
)

// ActorState are the statistics of one actor. Durations are in nanoseconds when encoded.
type ActorState struct {
	// Path is the place in the tree, Parent the path of the supervisor ("" for a root actor),
	// Kind the label of Spec.
	Path   string `json:"path"`
	Parent string `json:"parent"`
	Kind   string `json:"kind"`
	// State is what the actor is doing; Until is when a back-off or a quarantine ends, zero
	// otherwise.
	State State     `json:"state"`
	Until time.Time `json:"until,omitzero"`
	// Incarnation is the present one, Restarts how many times this actor was restarted, Uptime
	// the age of the incarnation.
	Incarnation uint64        `json:"incarnation"`
	Restarts    uint64        `json:"restarts"`
	Uptime      time.Duration `json:"uptime"`
	// User and System are the lengths of the queues, HighWater the largest User ever, OldestAge
	// the largest PendingMessage.Age.
	User      int           `json:"user"`
	System    int           `json:"system"`
	HighWater int           `json:"highWater"`
	OldestAge time.Duration `json:"oldestAge"`
	// Posted counts all user messages, Coalesced the ones that replaced a pending one. Stale
	// counts messages of an ended incarnation or a cancelled timer. Discarded counts messages
	// that were dropped because the actor went down or because too many waited (Spec.Limit).
	// Handled counts all messages, system messages included.
	Posted    uint64 `json:"posted"`
	Handled   uint64 `json:"handled"`
	Coalesced uint64 `json:"coalesced"`
	Stale     uint64 `json:"stale"`
	Discarded uint64 `json:"discarded"`
	// Panics counts failures, contained ones included; LastFailure is the reason of the latest.
	Panics      uint64 `json:"panics"`
	LastFailure string `json:"lastFailure,omitempty"`
	// Busy is the time spent in handlers.
	Busy time.Duration `json:"busy"`
	// Current is the type of the message that is being handled, CurrentFor since how long; Last
	// is the type of the last one.
	Current    string        `json:"current,omitempty"`
	CurrentFor time.Duration `json:"currentFor,omitempty"`
	Last       string        `json:"last,omitempty"`
	// Strategy of a supervisor: rest-for-one restarts the children behind the one that failed,
	// one-for-one only that one; "" = it has no children.
	Strategy string `json:"strategy,omitempty"`
	// Budget is how many failures of its children a supervisor tolerates in its window,
	// BudgetLeft how many of them are left; -1 = any number.
	Budget     int `json:"budget,omitempty"`
	BudgetLeft int `json:"budgetLeft,omitempty"`
	// Suspended and Held are the flags behind State.
	Suspended bool `json:"suspended"`
	Held      bool `json:"held"`
}

// State reads the statistics.
func (b *Mailbox) State() ActorState {
	now := b.sys.nanos()
	b.mu.Lock()
	defer b.mu.Unlock()
	s, f := &b.stats, &b.flags
	state := ActorState{
		Path: b.Path(), Parent: parentPath(b.Path()), Kind: b.spec.Kind, State: b.state(), Incarnation: b.numbers.present,
		User: b.user.len(), System: b.system.len(), HighWater: s.highWater, Posted: s.posted, Handled: s.handled,
		Coalesced: s.coalesced, Stale: s.stale, Discarded: s.dropped, Panics: s.panics, Busy: time.Duration(s.busy),
		Current: nameOf(s.current), Last: nameOf(s.last), Suspended: f.suspended, Held: f.held || f.gated,
	}
	if b.numbers.present > 0 {
		state.Restarts, state.Uptime = b.numbers.present-b.numbers.first, time.Duration(now-s.born)
	}
	if s.current != nil {
		state.CurrentFor = time.Duration(now - s.since)
	}
	if v := b.supervises.Load(); v != nil {
		state.Strategy, state.Budget, state.BudgetLeft = v.strategy, v.budget, v.left(b.sys.clock.Now())
	}
	for e := range b.user.all() {
		// not only the first: a key that was updated is older than its place
		state.OldestAge = max(state.OldestAge, time.Duration(now-e.at))
	}
	if l := b.failures; l != nil {
		if l.condition != "" {
			state.Until = l.until
		}
		if n := len(l.latest); n > 0 {
			state.LastFailure = l.latest[n-1].Reason
		}
	}
	return state
}

// state is the one word for all flags. Lock must be held.
func (b *Mailbox) state() State {
	f := &b.flags
	switch {
	case f.stopping:
		return StateStopping
	case b.failures != nil && b.failures.condition != "":
		return b.failures.condition
	case f.suspended:
		return StateSuspended
	case f.held || f.gated:
		return StateHeld
	case !f.started || f.barrier && !f.ready:
		return StateStarting
	case f.scheduled:
		return StateRunning
	default:
		return StateIdle
	}
}

// PendingMessage is one message that waits in a mailbox.
type PendingMessage struct {
	// Type is the type of the message without package and envelope.
	Type string `json:"type"`
	// Key is its coalesce key, "" if it does not coalesce.
	Key string `json:"key,omitempty"`
	// Age is the time since it was posted, with a key since the first value that has not been
	// handled.
	Age time.Duration `json:"age"`
	// Sender is the path of the actor that requested it, "" if it was only sent.
	Sender string `json:"sender,omitempty"`
	// Body is the message if its type is of package messages, which are not modified once they
	// are sent; nil for other messages.
	Body proto.Message `json:"-"`
}

// Pending lists the user messages that wait, in the order in which they will be handled.
func (b *Mailbox) Pending() []PendingMessage {
	now := b.sys.nanos()
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]PendingMessage, 0, b.user.len())
	for e := range b.user.all() {
		_, msg, sender := actor.UnwrapEnvelope(e.msg)
		body, _ := msg.(proto.Message)
		out = append(out, PendingMessage{Type: typeName(e.msg), Key: e.key, Age: time.Duration(now - e.at), Sender: sender.GetId(), Body: body})
	}
	return out
}

// Snapshot reads all actors, ordered by path. It never enters an actor.
func (s *System) Snapshot() []ActorState {
	s.mu.Lock()
	boxes := make([]*Mailbox, 0, len(s.boxes))
	for _, b := range s.boxes {
		boxes = append(boxes, b)
	}
	s.mu.Unlock()
	// Sorted and read without the lock of the system: ten thousand actors take some
	// milliseconds.
	slices.SortFunc(boxes, func(a, b *Mailbox) int { return strings.Compare(a.Path(), b.Path()) })
	states := make([]ActorState, len(boxes))
	for i, b := range boxes {
		states[i] = b.State()
	}
	return states
}

// Actor reads one actor.
func (s *System) Actor(path string) (ActorState, bool) {
	if box := s.lookup(path); box != nil {
		return box.State(), true
	}
	return ActorState{}, false
}

// Mailbox finds the mailbox of an actor. Use it at once: after a respawn of the name it is another
// one.
func (s *System) Mailbox(path string) (*Mailbox, bool) {
	box := s.lookup(path)
	return box, box != nil
}

// Statistics counts what a System holds. After Shutdown it is the same as before the first actor.
type Statistics struct {
	// Actors are the registered mailboxes, Spawning the actors that are being made.
	Actors, Spawning int
	// Goroutines counts the goroutines of Context.Go that have not ended.
	Goroutines int
	// Processes are the entries in the registry of protoactor: actors, calls of Ask that wait,
	// and a fixed number of protoactor's own. Its guardian, which it makes with the first root
	// actor and keeps, is not among them.
	Processes int
}

// Statistics counts without entering an actor.
func (s *System) Statistics() Statistics {
	s.mu.Lock()
	c := Statistics{Actors: len(s.boxes), Spawning: len(s.spawning), Goroutines: len(s.routines)}
	s.mu.Unlock()
	for _, shard := range s.proto.ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, id := range shard.Keys() {
			if !strings.HasPrefix(id, "guardian") {
				c.Processes++
			}
		}
	}
	return c
}
