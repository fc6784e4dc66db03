package render

import "strings"

// turnSize is how many objects of one service are taken in its turn.
const turnSize = 16

// turns is a queue that hands out objects in turns: one namespace after the other, within a namespace one service after the other, and within a service
// in the order in which they came. So a change waits for a turn of each other namespace, however much one of them has to do. The zero value is empty.
type turns[K comparable] struct {
	flows  map[string]*flow[K]  // by service
	spaces map[string]*space[K] // by namespace
	order  []*space[K]          // those that have something, the next one first
}

// space is one namespace.
type space[K comparable] struct {
	name  string
	order []*flow[K] // the services that have something, the next one first
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

// turn takes the objects of the next turn, at most so many. drained is the service that has none left; "" = the one whose turn it was has more, or is
// none.
func (t *turns[K]) turn(most int) (keys []K, drained string) {
	if len(t.order) == 0 {
		return nil, ""
	}
	s := t.order[0]
	l := s.order[0]
	t.order, s.order = t.order[1:], s.order[1:]
	n := min(len(l.keys), most, turnSize)
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
	return keys, drained
}

// empty reports whether nothing waits.
func (t *turns[K]) empty() bool { return len(t.order) == 0 }

// waits reports whether something of a service waits.
func (t *turns[K]) waits(service string) bool { return t.flows[service] != nil }
