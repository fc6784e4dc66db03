package cluster

import (
	"fmt"

	"github.com/troupe-vpp/troupe/messages"
)

// verb is the purpose of an operation.
type verb string

const (
	// verbClaim takes an ID: the lowest free ID, or the ID that this node has lost.
	verbClaim verb = "claim"
	// verbAdopt writes the record of an ID that this node has already: once per process, after a
	// change of the UID, and to repair the record.
	verbAdopt verb = "adopt"
	// verbRelease deletes surplus IDs with the name of this node.
	verbRelease verb = "release"
	verbPublish verb = "publish"
	// verbCollect deletes all keys of a node that has left Kubernetes.
	verbCollect verb = "collect"
)

// guard is a condition of a transaction: the key was last written at this revision. Revision 0
// means that the key does not exist.
type guard struct {
	key string
	mod int64
}

// put is one write.
type put struct{ key, value string }

// branch is a set of writes and deletions under guards.
type branch struct {
	guards  []guard
	puts    []put
	deletes []string
}

// operation is one transaction as a value. If its guards are true, the store executes the first
// branch whose own guards are true, completely or not at all. Branches are alternatives: the store
// takes the first candidate that is free when it applies the transaction. So many nodes that join
// at once get the lowest IDs with few conflicts.
type operation struct {
	verb verb
	// about is the object of the operation, for the log.
	about    string
	guards   []guard
	branches []branch
}

// guardID and the other guards require that a key has not changed since the keyspace was read.
func (k *keyspace) guardID(id uint32) guard { return guard{k.layout.id(id), k.ids[id].mod} }

func (k *keyspace) guardName(name string) guard { return guard{k.layout.name(name), k.names[name].mod} }

func (k *keyspace) guardAddresses(name string) guard {
	return guard{k.layout.addresses(name), k.addresses[name].mod}
}

// putRecord returns both writes of a record, so that the ID and the name are always written
// together.
func (k *keyspace) putRecord(r *messages.NodeRecord) ([]put, error) {
	value, err := encodeRecord(r)
	if err != nil {
		return nil, err
	}
	return []put{{k.layout.id(r.GetId()), value}, {k.layout.name(r.GetName()), value}}, nil
}

// take builds the transaction that writes the record of this node under an ID and deletes every
// other ID with its name. Both keys of the record and all deleted keys are guarded.
func (k *keyspace) take(v verb, r *messages.NodeRecord) (*operation, error) {
	puts, err := k.putRecord(r)
	if err != nil {
		return nil, err
	}
	op := &operation{
		verb: v, about: fmt.Sprintf("ID %d for %s", r.GetId(), r.GetName()),
		guards: []guard{k.guardID(r.GetId()), k.guardName(r.GetName())},
	}
	drop := branch{puts: puts}
	for _, id := range k.owners[r.GetName()] {
		if id != r.GetId() {
			op.guards = append(op.guards, k.guardID(id))
			drop.deletes = append(drop.deletes, k.layout.id(id))
		}
	}
	op.branches = []branch{drop}
	return op, nil
}

// takeFree builds the transaction that takes the first free candidate, provided that the name has
// no other ID.
func (k *keyspace) takeFree(candidates []uint32, name, uid string) (*operation, error) {
	op := &operation{
		verb: verbClaim, about: fmt.Sprintf("lowest free ID, now %d, for %s", candidates[0], name),
		guards: []guard{k.guardName(name)},
	}
	for _, id := range candidates {
		puts, err := k.putRecord(&messages.NodeRecord{Id: id, Name: name, Uid: uid})
		if err != nil {
			return nil, err
		}
		op.branches = append(op.branches, branch{guards: []guard{{key: k.layout.id(id)}}, puts: puts})
	}
	return op, nil
}

// dropIDs builds the transaction that deletes IDs of a name, provided that the IDs and the name
// record have not changed.
func (k *keyspace) dropIDs(name string, ids []uint32) *operation {
	op := &operation{
		verb: verbRelease, about: fmt.Sprintf("surplus IDs %v of %s", ids, name),
		guards: []guard{k.guardName(name)},
	}
	var drop branch
	for _, id := range ids {
		op.guards = append(op.guards, k.guardID(id))
		drop.deletes = append(drop.deletes, k.layout.id(id))
	}
	op.branches = []branch{drop}
	return op
}

// dropNode builds the transaction that deletes all keys of a node, provided that no key has
// changed. A node that comes back writes its record first, so an observer with an old view cannot
// delete it.
func (k *keyspace) dropNode(name string) *operation {
	op := k.dropIDs(name, k.owners[name])
	op.verb, op.about = verbCollect, fmt.Sprintf("IDs %v of %s, which left Kubernetes", k.owners[name], name)
	op.guards = append(op.guards, k.guardAddresses(name))
	drop := &op.branches[0]
	for _, g := range []guard{k.guardName(name), k.guardAddresses(name)} {
		if g.mod != 0 {
			drop.deletes = append(drop.deletes, g.key)
		}
	}
	return op
}
