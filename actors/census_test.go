package actors

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/kube"
)

func TestCensusKnowsNews(t *testing.T) {
	s := newCensus()
	for _, step := range []struct {
		name            string
		run, generation uint64
		exists, news    bool
	}{
		{"first", 1, 5, true, true},
		{"the same again", 1, 5, true, false},
		{"an older one", 1, 4, true, false},
		{"it goes", 1, 6, false, true},
		{"an older one of the dead", 1, 5, true, false},
		{"it comes back", 1, 7, true, true},
		{"another run counts anew", 2, 1, true, true},
		{"a late word of the first run", 1, 99, true, false},
	} {
		if got := s.hear("a/a", mark(step.run, step.generation), step.exists); got != step.news {
			t.Errorf("%s: news %t, want %t", step.name, got, step.news)
		}
	}
}

func TestCensusForgetsTheDeadAfterTwoAges(t *testing.T) {
	s, now := newCensus(), time.Unix(1000, 0)
	s.hear("a/a", 2, false)
	for range 3 {
		s.age(now) // that it is asked often does not make it forget sooner
	}
	if s.hear("a/a", 1, true) {
		t.Error("forgotten after one age")
	}
	s.age(now.Add(longestWay))
	if !s.hear("a/a", 1, true) {
		t.Error("not forgotten after two ages")
	}
}

// TestCensusDigestIsTheOneOfTheSource: whatever happened, the digest is that of what is known, computed from scratch.
func TestCensusDigestIsTheOneOfTheSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, want := newCensus(), map[string]uint64{}
		for generation := range uint64(rapid.IntRange(0, 40).Draw(t, "steps")) {
			key := fmt.Sprint("ns/s", rapid.IntRange(0, 5).Draw(t, "key"))
			exists := rapid.Bool().Draw(t, "exists")
			s.hear(key, mark(3, generation+1), exists)
			if delete(want, key); exists {
				want[key] = generation + 1
			}
		}
		marks := map[string]uint64{}
		bare, hash := uint64(0), uint64(0)
		for key, generation := range want {
			marks[key] = mark(3, generation)
			bare ^= kube.DigestHash(key, generation)
			hash ^= kube.DigestHash(key, mark(3, generation))
		}
		if diff := cmp.Diff(marks, maps.Clone(s.marks)); diff != "" {
			t.Fatalf("marks (-want +got):\n%s", diff)
		}
		if s.bare != bare || s.hash != hash {
			t.Fatalf("hashes %x %x, want %x %x", s.bare, s.hash, bare, hash)
		}
		shown := map[string]bool{}
		for _, key := range s.absent(mark(3, 20), shown) {
			if want[key] > 20 {
				t.Fatalf("%s is younger than the list", key)
			}
		}
	})
}
