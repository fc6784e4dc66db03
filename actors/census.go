package actors

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// markBits is how many bits of a mark belong to the generation.
const markBits = 40

// mark orders everything that is ever said of one key: generations of the source count from 1 in each run of it, and runs are numbered by
// the incarnations of the watch.
func mark(run, generation uint64) uint64 { return run<<markBits | generation }

// census is what somebody has heard of the source: the mark of every service, also of some that have gone. With it he can tell news from
// messages that were overtaken. A mailbox lets the latest value of a key overtake a snapshot that was sent before it, so this happens.
type census struct {
	marks map[string]uint64
	gone  [2]map[string]uint64 // marks of services that went: lately, and before that
	hash  uint64               // XOR over marks
	bare  uint64               // XOR over marks without their runs, as the source computes it
	aged  time.Time            // when gone was looked at last
}

func newCensus() census {
	return census{marks: map[string]uint64{}, gone: [2]map[string]uint64{{}, {}}}
}

// hear enters what was said of a key and reports whether it is news.
func (s *census) hear(key string, at uint64, exists bool) bool {
	if at <= max(s.marks[key], s.gone[0][key], s.gone[1][key]) {
		return false
	}
	s.enter(key, at, exists)
	return true
}

// enter replaces what is known of a key.
func (s *census) enter(key string, at uint64, exists bool) {
	if before, known := s.marks[key]; known {
		s.toggle(key, before)
		delete(s.marks, key)
	}
	if exists {
		s.marks[key] = at
		s.toggle(key, at)
	} else {
		s.gone[0][key] = at
	}
}

func (s *census) toggle(key string, at uint64) {
	s.hash ^= kube.DigestHash(key, at)
	s.bare ^= kube.DigestHash(key, at&(1<<markBits-1))
}

// absent lists, ordered, the services that a complete list of that mark should have shown and did not.
func (s *census) absent(at uint64, shown map[string]bool) []string {
	var keys []string
	for key, known := range s.marks {
		if known <= at && !shown[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// age forgets services that went some time ago: nothing that was said before can still be under way.
func (s *census) age(now time.Time) {
	if now.Sub(s.aged) >= longestWay {
		s.aged, s.gone = now, [2]map[string]uint64{{}, s.gone[0]}
	}
}

// longestWay is how long a message may be under way at most, with a wide margin.
const longestWay = 5 * time.Second

// digest summarises the census.
func (s *census) digest(node uint64) *messages.Digest {
	return &messages.Digest{Services: uint64(len(s.marks)), Hash: s.hash, NodeGeneration: node}
}

// asSource is the digest that the source would compute, which knows no runs.
func (s *census) asSource(node uint64) *messages.Digest {
	return &messages.Digest{Services: uint64(len(s.marks)), Hash: s.bare, NodeGeneration: node}
}

// sameDigest compares two digests.
func sameDigest(a, b *messages.Digest) bool {
	return a.GetHash() == b.GetHash() && a.GetServices() == b.GetServices() && a.GetNodeGeneration() == b.GetNodeGeneration()
}

// sortedKeys returns the keys of a map in order, so that whatever follows from them is repeatable.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
