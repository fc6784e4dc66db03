package render

import "strings"

// Limits of one turn of a service.
const (
	// turnSize is how many objects are taken.
	turnSize = 16
	// TurnMessages is how many messages to VPP a turn needs at most, as Adapter.Cost estimates.
	// The last object of a turn may exceed it; for one object at most this many messages are
	// sent.
	TurnMessages = 256
)

// turns is a queue that hands out objects in turns. It goes from namespace to namespace, within one
// from service to service, and within a service it is first in, first out. So a change waits for a
// turn of each other namespace, however long their queues are. The zero value is empty.
type turns[K comparable] struct {
	flows  map[string]*flow[K]  // by service
	spaces map[string]*space[K] // by namespace
	order  []*space[K]          // namespaces with objects, the next one first
}

// space is one namespace.
type space[K comparable] struct {
	name  string
	order []*flow[K] // services with objects, the next one first
}

// flow is one service.
type flow[K comparable] struct {
	service string
	keys    []K
}

// push adds an object at the end of its service.
func (t *turns[K]) push(service string, k K) {
	l := t.flows[service]
	if l == nil {
		if t.flows == nil {
			t.flows, t.spaces = map[string]*flow[K]{}, map[string]*space[K]{}
		}
		l = &flow[K]{service: service}
		t.flows[service] = l
		namespace, _, _ := strings.Cut(service, "/")
		s := t.spaces[namespace]
		if s == nil {
			s = &space[K]{name: namespace}
			t.spaces[namespace] = s
			t.order = append(t.order, s)
		}
		s.order = append(s.order, l)
	}
	l.keys = append(l.keys, k)
}

// again puts an object, a part of whose messages has been sent, in front of its service.
func (t *turns[K]) again(service string, k K) {
	t.push(service, k)
	keys := t.flows[service].keys
	copy(keys[1:], keys)
	keys[0] = k
}

// turn takes the objects of the next turn, at most most, and returns how many messages they need.
// It returns in drained the service of the turn if that has no object left; "" = it has more.
func (t *turns[K]) turn(most int, cost func(K) int) (keys []K, messages int, drained string) {
	if len(t.order) == 0 {
		return nil, 0, ""
	}
	s := t.order[0]
	l := s.order[0]
	t.order[0], s.order[0] = nil, nil // otherwise the arrays keep all that they have ever had
	t.order, s.order = t.order[1:], s.order[1:]
	n := 0
	for n < min(len(l.keys), most, turnSize) && messages < TurnMessages {
		messages += min(cost(l.keys[n]), TurnMessages)
		n++
	}
	keys, l.keys = l.keys[:n:n], l.keys[n:]
	if len(l.keys) > 0 {
		s.order = append(s.order, l)
	} else {
		drained = l.service
		delete(t.flows, drained)
	}
	if len(s.order) > 0 {
		t.order = append(t.order, s)
	} else {
		delete(t.spaces, s.name)
	}
	return keys, messages, drained
}

// empty reports whether nothing waits.
func (t *turns[K]) empty() bool { return len(t.order) == 0 }

// waits reports whether something of a service waits.
func (t *turns[K]) waits(service string) bool { return t.flows[service] != nil }
