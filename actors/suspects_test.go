package actors

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// TestSuspectsTakeTurns: however many there are, few are asked at a time, everybody in turn; who has just spoken is left alone, who is beyond
// suspicion is forgotten.
func TestSuspectsTakeTurns(t *testing.T) {
	const many = 3 * suspectsAtOnce
	s, now := newSuspects(), time.Unix(1000, 0)
	said := map[string]*messages.ServiceStatus{}
	var keys []string
	for n := range many {
		keys = append(keys, fmt.Sprintf("ns/s%03d", n))
	}
	s.take(&messages.Ensure{Keys: keys, Generations: slices.Repeat([]uint64{1}, many)})
	last := func(key string) *messages.ServiceStatus { return said[key] }
	asked := map[string]int{}
	for range 6 {
		next := s.next(last, 2, now, time.Second)
		if len(next) != suspectsAtOnce {
			t.Fatalf("%d are asked at once", len(next))
		}
		for _, key := range next {
			asked[key]++
		}
	}
	for _, key := range keys {
		if asked[key] != 2 {
			t.Errorf("%s was asked %d times in two rounds", key, asked[key])
		}
		said[key] = &messages.ServiceStatus{Key: key, Changed: now.UnixNano()}
	}
	if next := s.next(last, 2, now, time.Second); len(next) != 0 {
		t.Errorf("%q are asked although they have just spoken", next)
	}
	for _, key := range keys[1:] {
		said[key] = settledStatus(key, 1)
	}
	s.note(keys[2], 8)
	if next := s.next(last, 2, now.Add(time.Second), time.Second); !slices.Equal(next, []string{keys[0], keys[2]}) || len(s.turn) != 2 {
		t.Errorf("%q are asked, %d are left", next, len(s.turn))
	}
	s.take(&messages.Ensure{Keys: keys[3:4], Generations: []uint64{1}})
	if next := s.next(last, 2, now.Add(time.Second), time.Second); len(next)+len(s.turn)+len(s.waiting) != 0 || len(s.known) != 1 {
		t.Errorf("%q are asked, %d are left, known %v", next, len(s.turn), s.known)
	}
	s.forget(keys[3])
	if got := s.digest(); got.GetHash() != 0 || got.GetServices() != 0 {
		t.Errorf("the sum over nobody is %v", got)
	}
}
