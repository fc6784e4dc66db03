package cluster

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
)

// pair is one key with its value in the store.
type pair struct {
	key   string
	value []byte
	mod   int64 // revision of the last write
}

// change is one write or deletion.
type change struct {
	pair
	deleted bool
}

// entry is the state of one key.
type entry[T proto.Message] struct {
	// value is the last good value; zero if no value could be decoded so far.
	value T
	known bool
	// mod is the revision of the last write, decodable or not.
	mod int64
	// err is the reason why the current value is undecodable.
	err error
}

type (
	recordEntry  = entry[*messages.NodeRecord]
	addressEntry = entry[*messages.NodeAddresses]
)

// keyspace is the decoded content under the root at one revision. It belongs to one goroutine; the
// messages in it are immutable.
type keyspace struct {
	layout    layout
	revision  int64
	ids       map[uint32]recordEntry
	names     map[string]recordEntry
	addresses map[string]addressEntry
	// owners lists, by node name, the IDs whose record has that name, ascending.
	owners map[string][]uint32
	// problems are the errors of undecodable keys, by key.
	problems map[string]error
}

func newKeyspace(l layout) *keyspace {
	return &keyspace{
		layout: l, ids: map[uint32]recordEntry{}, names: map[string]recordEntry{}, addresses: map[string]addressEntry{},
		owners: map[string][]uint32{}, problems: map[string]error{},
	}
}

// replaced returns the keyspace of a complete list. A key that is undecodable in the list keeps its
// last good value from k.
func (k *keyspace) replaced(revision int64, pairs []pair) *keyspace {
	next := newKeyspace(k.layout)
	next.revision = revision
	for _, p := range pairs {
		key := next.layout.parse(p.key)
		switch key.kind {
		case kindID:
			next.setID(key, p, k.ids[key.id])
		case kindName:
			next.setName(key, p, k.names[key.name])
		case kindAddresses:
			next.setAddresses(key, p, k.addresses[key.name])
		case kindUnknown:
			next.setUnknown(p)
		}
	}
	return next
}

// apply brings the keyspace to a later revision and returns the names of the nodes whose keys have
// changed.
func (k *keyspace) apply(changes []change) []string {
	touched := map[string]bool{}
	for _, c := range changes {
		k.revision = max(k.revision, c.mod)
		key := k.layout.parse(c.key)
		switch key.kind {
		case kindID:
			old := k.ids[key.id]
			touched[old.value.GetName()] = true
			if c.deleted {
				k.deleteID(key.id)
			} else {
				k.setID(key, c.pair, old)
			}
			touched[k.ids[key.id].value.GetName()] = true
		case kindName:
			touched[key.name] = true
			if c.deleted {
				delete(k.names, key.name)
				delete(k.problems, c.key)
			} else {
				k.setName(key, c.pair, k.names[key.name])
			}
		case kindAddresses:
			touched[key.name] = true
			if c.deleted {
				delete(k.addresses, key.name)
				delete(k.problems, c.key)
			} else {
				k.setAddresses(key, c.pair, k.addresses[key.name])
			}
		case kindUnknown:
			if c.deleted {
				delete(k.problems, c.key)
			} else {
				k.setUnknown(c.pair)
			}
		}
	}
	// An id record that was never decodable has no name.
	delete(touched, "")
	return slices.Sorted(maps.Keys(touched))
}

// updated returns the entry of a key after a write: the new value, or the last good value with the
// error.
func updated[T proto.Message](k *keyspace, p pair, last entry[T], value T, err error) entry[T] {
	if err != nil {
		k.problems[p.key] = err
		last.mod, last.err = p.mod, err
		return last
	}
	delete(k.problems, p.key)
	return entry[T]{value: value, known: true, mod: p.mod}
}

// setID replaces an id record and keeps owners up to date.
func (k *keyspace) setID(key parsedKey, p pair, last recordEntry) {
	record, err := decodeRecord(key, p.value)
	k.deleteID(key.id)
	e := updated(k, p, last, record, err)
	k.ids[key.id] = e
	if e.known {
		name := e.value.GetName()
		owned := append(slices.Clone(k.owners[name]), key.id)
		slices.Sort(owned)
		k.owners[name] = owned
	}
}

func (k *keyspace) deleteID(id uint32) {
	old, ok := k.ids[id]
	if !ok {
		return
	}
	delete(k.ids, id)
	delete(k.problems, k.layout.id(id))
	name := old.value.GetName()
	rest := slices.DeleteFunc(slices.Clone(k.owners[name]), func(x uint32) bool { return x == id })
	if len(rest) == 0 {
		delete(k.owners, name)
	} else {
		k.owners[name] = rest
	}
}

func (k *keyspace) setName(key parsedKey, p pair, last recordEntry) {
	record, err := decodeRecord(key, p.value)
	k.names[key.name] = updated(k, p, last, record, err)
}

func (k *keyspace) setAddresses(key parsedKey, p pair, last addressEntry) {
	stored, err := decodeAddresses(key, p.value)
	k.addresses[key.name] = updated(k, p, last, stored, err)
}

// setUnknown records a key of an unknown layout as undecodable, because a later version may have
// written it.
func (k *keyspace) setUnknown(p pair) {
	k.problems[p.key] = fmt.Errorf("%w: no such key in this version", ErrUndecodable)
}

// idOf returns the ID of a node: the ID on which its name record and an id record agree, otherwise
// the lowest ID with its name, otherwise 0.
func (k *keyspace) idOf(name string) uint32 {
	owned := k.owners[name]
	if id := k.names[name].value.GetId(); id != 0 && slices.Contains(owned, id) {
		return id
	}
	if len(owned) == 0 {
		return 0
	}
	return owned[0]
}

// uidOf returns the UID under which a node holds its ID.
func (k *keyspace) uidOf(name string) string { return k.ids[k.idOf(name)].value.GetUid() }

// free returns the n lowest free IDs, ascending, so that the IDs in use stay dense. The ID of an
// undecodable record is not free.
func (k *keyspace) free(n int) []uint32 {
	found := make([]uint32, 0, n)
	for id := uint32(1); len(found) < n && id != 0; id++ {
		if _, taken := k.ids[id]; !taken {
			found = append(found, id)
		}
	}
	return found
}
