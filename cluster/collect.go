package cluster

import "time"

// sighting is since when this observer has missed a node in Kubernetes without interruption, and the last write of that node's keys: a
// node that writes is alive, so the clock starts again.
type sighting struct {
	since time.Time
	mod   int64
}

// observeAbsence brings the sightings up to date. While the view is not complete nothing can be said, and all clocks are forgotten.
func observeAbsence(seen map[string]sighting, k *keyspace, v view, self string, now time.Time) map[string]sighting {
	if !v.complete(self) {
		return nil
	}
	absent := map[string]sighting{}
	miss := func(name string) {
		if v.nodes[name] != nil || name == self || k.doubtful(name) {
			return
		}
		s := sighting{since: now, mod: k.lastWrite(name)}
		if old, ok := seen[name]; ok && old.mod == s.mod {
			s = old
		}
		absent[name] = s
	}
	for name := range k.owners {
		miss(name)
	}
	for name := range k.names {
		miss(name)
	}
	for name := range k.addresses {
		miss(name)
	}
	return absent
}

// doubtful tells whether something about a node is stored that nobody here understands. It is left alone: whoever can read it may know
// better.
func (k *keyspace) doubtful(name string) bool {
	if len(k.problems) == 0 {
		return false
	}
	for _, id := range k.owners[name] {
		if k.ids[id].err != nil {
			return true
		}
	}
	return k.names[name].err != nil || k.addresses[name].err != nil
}

// lastWrite is the revision of the last write to any key of a node.
func (k *keyspace) lastWrite(name string) int64 {
	mod := max(k.names[name].mod, k.addresses[name].mod)
	for _, id := range k.owners[name] {
		mod = max(mod, k.ids[id].mod)
	}
	return mod
}

// decideCollect returns the transaction that collects one node whose grace is over, and when to look again otherwise. Of several it
// takes the one that is due first, by name among equals.
func decideCollect(in input) (*operation, time.Time) {
	if !in.connected || !in.view.complete(in.self.name) {
		return nil, time.Time{}
	}
	var (
		first string
		due   time.Time
	)
	for name, s := range in.absent {
		at := s.since.Add(in.grace)
		if first == "" || at.Before(due) || at.Equal(due) && name < first {
			first, due = name, at
		}
	}
	if first == "" || in.now.Before(due) {
		return nil, due
	}
	return in.keys.dropNode(first), due
}
