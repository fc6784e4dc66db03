package runtime

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
)

// keptLetters is how many of the latest dead letters are remembered.
const keptLetters = 64

// DeadLetter is a user message that was not delivered.
type DeadLetter struct {
	// At is when it was discarded.
	At time.Time `json:"at"`
	// To is the path it was sent to, "" for a message without a receiver.
	To string `json:"to"`
	// Type is the type of the message.
	Type string `json:"type"`
	// Sender is the path of the actor that requested it, "" if it was only sent.
	Sender string `json:"sender,omitempty"`
	// Reason is why: "no such actor", "actor has stopped", "discarded on stop" or "too many
	// were waiting".
	Reason string `json:"reason"`
}

// deadLetters counts dead letters and remembers the latest.
type deadLetters struct {
	mu     sync.Mutex
	count  uint64
	latest []DeadLetter // a ring once it is full; next is the oldest
	next   int
}

// add overwrites the oldest when all places are taken.
func (d *deadLetters) add(l DeadLetter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	if len(d.latest) < keptLetters {
		d.latest = append(d.latest, l)
		return
	}
	d.latest[d.next] = l
	d.next = (d.next + 1) % keptLetters
}

// DeadLetters returns how many user messages were not delivered since the start, and the latest of
// them, oldest first.
func (s *System) DeadLetters() (count uint64, latest []DeadLetter) {
	d := &s.letters
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count, slices.Concat(d.latest[d.next:], d.latest[:d.next])
}

// undeliverable counts a message to path.
func (s *System) undeliverable(path string, msg any, reason string) {
	_, _, sender := actor.UnwrapEnvelope(msg)
	s.letters.add(DeadLetter{At: s.clock.Now(), To: path, Type: typeName(msg), Sender: sender.GetId(), Reason: reason})
}

// replaceEventStream turns off protoactor's own handling of dead letters, which stays subscribed to
// the old stream. It would start a goroutine that sleeps for a second, log, and answer each
// requester with a DeadLetterResponse. The new subscriber runs in the sender's goroutine and must
// not panic.
func (s *System) replaceEventStream() {
	// A new stream has no other subscriber.
	stream := eventstream.NewEventStream()
	stream.Subscribe(func(event any) {
		letter, ok := event.(*actor.DeadLetterEvent)
		if !ok {
			return
		}
		switch letter.Message.(type) {
		case actor.SystemMessage, actor.MailboxMessage:
			// messages of the life cycle of an actor that has stopped already
			return
		}
		if s.awaited(letter.PID.GetId()) {
			return
		}
		s.letters.add(DeadLetter{
			At: s.clock.Now(), To: letter.PID.GetId(), Type: typeName(letter.Message), Sender: letter.Sender.GetId(), Reason: "no such actor",
		})
	})
	s.proto.EventStream = stream
}

// awaited reports whether an Ordered supervisor has declared an actor, or one above it, and not
// started it, for example before the first Ready. Nothing is lost: an actor asks for everything at
// its start.
func (s *System) awaited(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.boxes[path] == nil {
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return false
		}
		parent, name := path[:i], path[i+1:]
		if box := s.boxes[parent]; box != nil {
			return slices.ContainsFunc(box.spec.Children, func(c Child) bool { return c.Name == name })
		}
		path = parent
	}
	return false
}
