package cluster

import "time"

// absence holds the time since which this observer has missed a node in Kubernetes without
// interruption, and the last write to that node's keys. A node that writes is alive, so its grace
// period starts again.
type absence struct {
	since time.Time
	mod   int64
}

// observeAbsence returns the absences of nodes that are in the keyspace and missing in Kubernetes;
// seen holds the earlier absences. An incomplete view resets all grace periods, because it does not
// prove the absence of a node.
func observeAbsence(seen map[string]absence, k *keyspace, v view, self string, now time.Time) map[string]absence {
	if !v.complete(self) {
		return nil
	}
	absent := map[string]absence{}
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

// observeTouched updates seen after a change of the keys of some nodes. Its cost depends on the
// number of changed nodes, not on the size of the cluster.
func observeTouched(seen map[string]absence, names []string, k *keyspace, v view, self string, now time.Time) {
	if !v.complete(self) {
		return
	}
	for _, name := range names {
		observe(seen, seen, name, k, v, self, now)
	}
}

// observe updates absent for one node. The start comes from seen if the node has not written since
// then.
func observe(absent, seen map[string]absence, name string, k *keyspace, v view, self string, now time.Time) {
	if v.nodes[name] != nil || name == self {
		delete(absent, name)
		return
	}
	mod := k.lastWrite(name)
	// There is no key to delete, or an undecodable key that must not be deleted.
	if mod == 0 || k.doubtful(name) {
		delete(absent, name)
		return
	}
	// The last write is the same, so the node has been silent and its grace period continues.
	if old, ok := seen[name]; ok && old.mod == mod {
		absent[name] = old
		return
	}
	absent[name] = absence{since: now, mod: mod}
}

// doubtful reports whether a key of a node is undecodable. Such a node is not collected: an agent
// of a later version may understand the key.
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

// lastWrite returns the revision of the last write to any key of a node.
func (k *keyspace) lastWrite(name string) int64 {
	mod := max(k.names[name].mod, k.addresses[name].mod)
	for _, id := range k.owners[name] {
		mod = max(mod, k.ids[id].mod)
	}
	return mod
}

// decideCollect returns the transaction that collects a node whose grace period is over, otherwise
// the time at which the next grace period ends. If several nodes are due, it takes the earliest, by
// name among equals.
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
