package runtime

import (
	"cmp"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Traffic is what the actors of one kind have handled and sent since the start of the system. It is
// counted by kind, so that it does not grow with the number of actors.
type Traffic struct {
	// Messages are the types of handled messages, the most frequent first.
	Messages []MessageTraffic
	// From are the kinds that have sent messages to actors of this kind, To the kinds that have
	// received messages from them, by the number of messages.
	From, To []KindTraffic
}

// MessageTraffic is one type of message.
type MessageTraffic struct {
	// Type is the name of the type, Count how many were handled.
	Type  string
	Count uint64
	// P50 and P99 are times below which 50 and 99 of 100 were handled, rounded up to a power of
	// two of nanoseconds.
	P50, P99 time.Duration
}

// KindTraffic is the number of messages from or to a kind of actors.
type KindTraffic struct {
	Kind  string
	Count uint64
}

// Traffic returns what the actors of a kind have handled and sent. The counters go on meanwhile.
func (s *System) Traffic(kind string) (t Traffic) {
	known, found := s.traffic.Load(kind)
	if !found {
		return t
	}
	known.(*traffic).types.Range(func(name, times any) bool { //nolint:forcetypeassert // nothing else is stored
		t.Messages = append(t.Messages, times.(*durations).summary(nameOf(name.(reflect.Type)))) //nolint:forcetypeassert // nothing else is stored
		return true
	})
	slices.SortFunc(t.Messages, func(a, b MessageTraffic) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Type, b.Type))
	})
	s.traffic.Range(func(name, other any) bool {
		if n, sent := other.(*traffic).to.Load(known); sent { //nolint:forcetypeassert // nothing else is stored
			t.From = append(t.From, KindTraffic{name.(string), n.(*atomic.Uint64).Load()}) //nolint:forcetypeassert // nothing else is stored
		}
		if n, sent := known.(*traffic).to.Load(other); sent { //nolint:forcetypeassert // nothing else is stored
			t.To = append(t.To, KindTraffic{name.(string), n.(*atomic.Uint64).Load()}) //nolint:forcetypeassert // nothing else is stored
		}
		return true
	})
	for _, all := range [][]KindTraffic{t.From, t.To} {
		slices.SortFunc(all, func(a, b KindTraffic) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Kind, b.Kind))
		})
	}
	return t
}

// traffic are the counters of one kind.
type traffic struct {
	types sync.Map // reflect.Type -> *durations
	to    sync.Map // *traffic -> *atomic.Uint64
}

// trafficOf returns the counters of a kind.
func (s *System) trafficOf(kind string) *traffic {
	t, _ := s.traffic.LoadOrStore(kind, &traffic{})
	return t.(*traffic) //nolint:forcetypeassert // nothing else is stored
}

// handled counts a message and the time that it took.
func (t *traffic) handled(of reflect.Type, took int64) {
	d, found := t.types.Load(of)
	if !found {
		d, _ = t.types.LoadOrStore(of, &durations{})
	}
	d.(*durations)[bits.Len64(uint64(max(took, 0)))].Add(1) //nolint:forcetypeassert // nothing else is stored
}

// sent counts a message to an actor of another kind.
func (t *traffic) sent(to *traffic) {
	n, found := t.to.Load(to)
	if !found {
		n, _ = t.to.LoadOrStore(to, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1) //nolint:forcetypeassert // nothing else is stored
}

// durations counts times by the number of bits of their nanoseconds.
type durations [65]atomic.Uint64

// summary is what the counters say.
func (d *durations) summary(name string) MessageTraffic {
	m := MessageTraffic{Type: name}
	var counts [len(d)]uint64
	for i := range d {
		counts[i] = d[i].Load()
		m.Count += counts[i]
	}
	var seen uint64
	for i, n := range counts {
		if n == 0 {
			continue
		}
		if seen += n; m.P50 == 0 && seen*100 >= m.Count*50 {
			m.P50 = time.Duration(1) << min(i, 62)
		}
		if m.P99 == 0 && seen*100 >= m.Count*99 {
			m.P99 = time.Duration(1) << min(i, 62)
		}
	}
	return m
}
