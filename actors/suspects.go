package actors

import (
	"maps"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// suspectsAtOnce is how many services are asked at a time, however many there are.
const suspectsAtOnce = 32

// suspects are the services of which something may have been lost on its way: they have not told of the generation that the registry has given
// out, or a renderer has not finished with them. Everything that a service depends on ends in what it tells introspection, so whoever is asked
// from there repeats what he has not been answered. It is plain data.
type suspects struct {
	known   map[string]uint64 // generations that are known to exist, by service
	gone    map[string]uint64 // with which generation a service went that the registry may name still
	hash    uint64            // XOR over known
	newest  uint64            // generation up to which we have been told who exists
	waiting map[string]bool   // those among them that are looked at in turn
	turn    []string          // whose turn it is
}

func newSuspects() suspects {
	return suspects{known: map[string]uint64{}, gone: map[string]uint64{}, waiting: map[string]bool{}}
}

// note learns that a generation exists.
func (s *suspects) note(key string, generation uint64) {
	if before, had := s.known[key]; !had || generation > before {
		s.forget(key)
		s.known[key] = generation
		s.hash ^= kube.DigestHash(key, generation)
	}
}

// leave learns that a service has gone with a generation. Lists that were written a moment before may name it still.
func (s *suspects) leave(key string, generation uint64) {
	s.forget(key)
	s.gone[key] = max(s.gone[key], generation)
}

// forget drops a service.
func (s *suspects) forget(key string) {
	if before, had := s.known[key]; had {
		s.hash ^= kube.DigestHash(key, before)
		delete(s.known, key)
	}
}

// digest summarises what is known.
func (s *suspects) digest() *messages.Digest {
	return &messages.Digest{Services: uint64(len(s.known)), Hash: s.hash}
}

// take learns which services there are, and forgets the others.
func (s *suspects) take(all *messages.Ensure) {
	exist := make(map[string]bool, len(all.GetKeys()))
	for n, key := range all.GetKeys() {
		exist[key] = true
		if generation := all.GetGenerations()[n]; generation > s.gone[key] {
			s.note(key, generation)
			s.watch(key)
		}
	}
	for key := range s.known {
		if !exist[key] {
			s.forget(key)
		}
	}
	s.newest = max(s.newest, all.GetNewest())
	maps.DeleteFunc(s.gone, func(key string, generation uint64) bool { return !exist[key] && generation <= s.newest })
}

// ended reports whether a service has said something before it ended, and we have been told already that it did.
func (s *suspects) ended(m *messages.ServiceStatus) bool {
	_, exists := s.known[m.GetKey()]
	return !m.GetGone() && (m.GetGeneration() <= s.gone[m.GetKey()] || !exists && m.GetGeneration() <= s.newest)
}

// watch has a service looked at.
func (s *suspects) watch(key string) {
	if !s.waiting[key] {
		s.waiting[key] = true
		s.turn = append(s.turn, key)
	}
}

// next are the services to be asked now, in turn. Those that are beyond suspicion are dropped; those that have spoken a moment ago are left alone.
func (s *suspects) next(last func(key string) *messages.ServiceStatus, renderers int, now time.Time, lately time.Duration) (keys []string) {
	const looks = 128 * suspectsAtOnce
	for range min(len(s.turn), looks) {
		key := s.turn[0]
		s.turn = s.turn[1:]
		status := last(key)
		if !s.suspect(key, status, renderers) {
			delete(s.waiting, key)
			continue
		}
		s.turn = append(s.turn, key)
		if status != nil && now.Sub(time.Unix(0, status.GetChanged())) < lately {
			continue
		}
		if keys = append(keys, key); len(keys) == suspectsAtOnce {
			break
		}
	}
	if len(s.turn) == 0 {
		s.turn = nil
	}
	return keys
}

// suspect reports whether something of a service is missing.
func (s *suspects) suspect(key string, status *messages.ServiceStatus, renderers int) bool {
	generation, exists := s.known[key]
	if !exists {
		return false
	}
	if status == nil || status.GetGeneration() < generation || len(status.GetRenders()) < renderers {
		return true
	}
	for _, ack := range status.GetRenders() {
		if !settled(ack) {
			return true
		}
	}
	return false
}
