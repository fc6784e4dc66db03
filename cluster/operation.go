package cluster

import (
	"fmt"

	"github.com/troupe-vpp/troupe/messages"
)

// verb says what an operation is for.
type verb string

const (
	// verbClaim takes an ID: the lowest free one, or the one that was lost.
	verbClaim verb = "claim"
	// verbAdopt writes the record of an ID that is already ours: once per life of the agent, when the UID changed, and to repair.
	verbAdopt verb = "adopt"
	// verbRelease deletes IDs that carry our name besides the one that we hold.
	verbRelease verb = "release"
	verbPublish verb = "publish"
	// verbCollect deletes everything of a node that has left Kubernetes.
	verbCollect verb = "collect"
)

// guard is a condition of a transaction: the key was last written at this revision, or, with 0, does not exist.
type guard struct {
	key string
	mod int64
}

// put is one write.
type put struct{ key, value string }

// branch is what happens when its guards hold.
type branch struct {
	guards  []guard
	puts    []put
	deletes []string
}

// operation is one etcd transaction as a value: when the guards hold, the first branch whose own guards hold is carried out, all of it or
// nothing. Several branches make a ladder: etcd itself goes down the candidates and takes the first that is free when the transaction is
// applied, so that many nodes that join at once still fill the IDs from the lowest up, with few conflicts.
type operation struct {
	verb verb
	// about says what the operation is meant to change, for the log.
	about    string
	guards   []guard
	branches []branch
}

// guardRecord and its sibling state that a key still is as the keyspace knows it.
func (k *keyspace) guardID(id uint32) guard { return guard{k.layout.id(id), k.ids[id].mod} }

func (k *keyspace) guardName(name string) guard { return guard{k.layout.name(name), k.names[name].mod} }

func (k *keyspace) guardAddresses(name string) guard {
	return guard{k.layout.addresses(name), k.addresses[name].mod}
}

// putRecord returns both writes of a record: there is no ID without its name, and no name without its ID.
func (k *keyspace) putRecord(r *messages.NodeRecord) ([]put, error) {
	value, err := encodeRecord(r)
	if err != nil {
		return nil, err
	}
	return []put{{k.layout.id(r.GetId()), value}, {k.layout.name(r.GetName()), value}}, nil
}

// take builds the transaction that writes our record under an ID and drops every other ID that carries our name. It is guarded by both
// keys, and by those that it drops.
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

// takeFree builds the transaction that takes the first of the candidates that is still free, provided that the name has no other ID.
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

// dropIDs builds the transaction that deletes IDs of a name, as long as neither they nor the name record change.
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

// dropNode builds the transaction that deletes everything of a node, as long as none of it changes: a node that comes back writes its
// record first thing, and so cannot be robbed by an observer that has not noticed yet.
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
