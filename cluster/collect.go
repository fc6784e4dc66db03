package cluster

import "time"

// sighting is since when this observer has missed a node in Kubernetes without interruption, and the last write of that node's keys: a
// node that writes is alive, so the clock starts again.
type sighting struct {
	since time.Time
	mod   int64
}

// observeAbsence looks for every node of the keyspace in Kubernetes and returns the sightings of those that are missing; seen are the
// earlier ones. While the view is not complete nothing can be said, and all clocks are forgotten.
func observeAbsence(seen map[string]sighting, k *keyspace, v view, self string, now time.Time) map[string]sighting {
	if !v.complete(self) {
		return nil
	}
	absent := map[string]sighting{}
	for name := range k.owners {
		observe(absent, seen, name, k, v, self, now)
	}
	for name := range k.names {
		observe(absent, seen, name, k, v, self, now)
	}
	for name := range k.addresses {
		observe(absent, seen, name, k, v, self, now)
	}
	return absent
}

// observeTouched is observeAbsence where nothing but the keys of some nodes has changed: it brings seen up to date.
func observeTouched(seen map[string]sighting, names []string, k *keyspace, v view, self string, now time.Time) {
	if !v.complete(self) {
		return
	}
	for _, name := range names {
		observe(seen, seen, name, k, v, self, now)
	}
}

// observe notes in absent whether a node is missing, since when, according to what was seen before.
func observe(absent, seen map[string]sighting, name string, k *keyspace, v view, self string, now time.Time) {
	if v.nodes[name] != nil || name == self {
		delete(absent, name)
		return
	}
	mod := k.lastWrite(name)
	if mod == 0 || k.doubtful(name) {
		delete(absent, name)
		return
	}
	if old, ok := seen[name]; ok && old.mod == mod {
		absent[name] = old
		return
	}
	absent[name] = sighting{since: now, mod: mod}
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
