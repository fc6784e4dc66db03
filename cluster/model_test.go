package cluster

import (
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// model is a model of etcd for operations: keys with revisions, and transactions.
// etcd_transact_test.go compares it with a real etcd.
type model struct {
	revision int64
	pairs    map[string]pair
}

func newModel() *model { return &model{revision: 1, pairs: map[string]pair{}} }

// list returns everything, by key.
func (m *model) list() []pair {
	var pairs []pair
	for _, key := range slices.Sorted(maps.Keys(m.pairs)) {
		pairs = append(pairs, m.pairs[key])
	}
	return pairs
}

// set writes one key without guards.
func (m *model) set(key, value string) {
	m.revision++
	m.pairs[key] = pair{key: key, value: []byte(value), mod: m.revision}
}

// drop deletes keys without guards.
func (m *model) drop(keys ...string) {
	m.revision++
	for _, key := range keys {
		delete(m.pairs, key)
	}
}

func (m *model) holds(guards []guard) bool {
	for _, g := range guards {
		if m.pairs[g.key].mod != g.mod {
			return false
		}
	}
	return true
}

// apply carries out an operation: all of one branch, or nothing.
func (m *model) apply(op *operation) bool {
	if !m.holds(op.guards) {
		return false
	}
	for _, b := range op.branches {
		if !m.holds(b.guards) {
			continue
		}
		m.revision++
		for _, p := range b.puts {
			m.pairs[p.key] = pair{key: p.key, value: []byte(p.value), mod: m.revision}
		}
		for _, key := range b.deletes {
			delete(m.pairs, key)
		}
		return true
	}
	return false
}

// record writes the pair of keys of a node.
func (m *model) record(l layout, id uint32, name, uid string) {
	value, err := encodeRecord(&messages.NodeRecord{Id: id, Name: name, Uid: uid})
	if err != nil {
		panic(err)
	}
	m.revision++
	for _, key := range []string{l.id(id), l.name(name)} {
		m.pairs[key] = pair{key: key, value: []byte(value), mod: m.revision}
	}
}

// keyspace returns the keyspace of an observer after a list.
func (m *model) keyspace(l layout, before *keyspace) *keyspace {
	if before == nil {
		before = newKeyspace(l)
	}
	return before.replaced(m.revision, m.list())
}

// check returns the errors in the records: every ID must have one name, and every name one ID.
func (m *model) check(l layout) error {
	k := m.keyspace(l, nil)
	if len(k.problems) > 0 {
		return fmt.Errorf("undecodable: %s", k.trouble())
	}
	for id, e := range k.ids {
		if other := k.names[e.value.GetName()].value; other.GetId() != id || other.GetUid() != e.value.GetUid() {
			return fmt.Errorf("ID %d is of %s (UID %s), whose name record says ID %d (UID %s)", id, e.value.GetName(), e.value.GetUid(),
				other.GetId(), other.GetUid())
		}
	}
	for name, e := range k.names {
		if other := k.ids[e.value.GetId()].value; other.GetName() != name {
			return fmt.Errorf("%s has ID %d, whose record says %q", name, e.value.GetId(), other.GetName())
		}
	}
	return nil
}

// mods returns the revisions of the records in a keyspace, by key.
func (k *keyspace) mods() map[string]int64 {
	mods := map[string]int64{}
	for id, e := range k.ids {
		mods[k.layout.id(id)] = e.mod
	}
	for name, e := range k.names {
		mods[k.layout.name(name)] = e.mod
	}
	return mods
}
