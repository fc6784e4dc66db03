package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
)

// identity holds the name of this node and its earlier IDs. The loop keeps it; decisions only read
// it.
type identity struct {
	name string
	// held is the ID that this process has held, 0 = none so far. heldUID is the UID under which it
	// held the ID.
	held    uint32
	heldUID string
	// lastID and lastUID come from the local mirror, which an earlier process has written.
	lastID  uint32
	lastUID string
	// confirmed is true once this process has written the record.
	confirmed bool
}

// remembered returns the ID that this node has used, in this process or in an earlier one. It
// returns 0 if the Node object has been created again since then.
func (s identity) remembered(uid string) uint32 {
	if s.held != 0 {
		return s.held
	}
	// The remembered ID belonged to another Node object of the same name.
	if s.lastUID != "" && uid != "" && s.lastUID != uid {
		return 0
	}
	return s.lastID
}

// claim is the outcome of decideClaim.
type claim struct {
	state  messages.ClaimState
	id     uint32
	uid    string // UID under which the ID is held
	reason string
	op     *operation
}

func pending(id uint32, format string, args ...any) claim {
	return claim{state: messages.ClaimState_CLAIM_PENDING, id: id, reason: fmt.Sprintf(format, args...)}
}

func fenced(id uint32, format string, args ...any) claim {
	return claim{state: messages.ClaimState_CLAIM_FENCED, id: id, reason: fmt.Sprintf(format, args...)}
}

// decideClaim returns the state of this node's claim and the next transaction for it. doc.go has
// the rules in prose.
func decideClaim(in input) claim {
	k, self := in.keys, in.self
	uid := in.view.nodes[self.name].GetUid()
	remembered := self.remembered(uid)
	switch target := in.target(remembered); {
	case in.holderOf(target) != "":
		return fenced(target, "ID %d, which this node has used, is held by %s", target, in.holderOf(target))
	case target == 0:
		return in.claimFree(uid)
	case k.ids[target].mod == 0:
		return in.claimAgain(target, uid)
	default:
		return in.adopt(target, uid)
	}
}

// target returns the ID that this node should have: the ID that it holds, otherwise the ID in the
// store under its name, otherwise the remembered ID. The ID must not change while pod and tunnel
// addresses derive from it.
func (in input) target(remembered uint32) uint32 {
	if in.self.held != 0 {
		return in.self.held
	}
	if named := in.keys.names[in.self.name].value.GetId(); named != 0 {
		return named
	}
	owned := in.keys.owners[in.self.name]
	switch {
	case slices.Contains(owned, remembered):
		return remembered
	case len(owned) > 0:
		return owned[0]
	default:
		return remembered
	}
}

// holderOf names the holder of an ID; "" if this node holds it. An undecodable record belongs to
// this node only if the name record of this node has the ID.
func (in input) holderOf(id uint32) string {
	e := in.keys.ids[id]
	switch {
	case e.mod == 0 || e.value.GetName() == in.self.name:
		return ""
	case e.known:
		return "node " + e.value.GetName()
	case in.keys.names[in.self.name].value.GetId() == id:
		return ""
	default:
		return "an undecodable record"
	}
}

// claimFree claims the lowest free ID for a node that has never had one.
func (in input) claimFree(uid string) claim {
	self, name := in.self.name, in.keys.names[in.self.name]
	switch {
	case name.err != nil:
		return pending(0, "the name record of %s cannot be decoded and no other key has its ID; delete %s to let it join as a new node",
			self, in.keys.layout.name(self))
	// Without Kubernetes this node may be one that was removed. Collectors would then release its
	// ID again.
	case !in.view.known:
		return pending(0, "waiting for Kubernetes to report node %s", self)
	case in.view.without(self):
		return pending(0, "node %s is not in Kubernetes", self)
	}
	op, err := in.keys.takeFree(in.keys.free(max(in.candidates, 1)), self, uid)
	if err != nil {
		return pending(0, "%v", err)
	}
	return claim{state: messages.ClaimState_CLAIM_PENDING, reason: "claiming an ID", op: op}
}

// claimAgain claims a free ID that this node has used.
func (in input) claimAgain(id uint32, uid string) claim {
	if in.view.without(in.self.name) {
		return pending(id, "node %s is not in Kubernetes and its ID %d has been released", in.self.name, id)
	}
	// The UID may be unknown while Kubernetes is away. The last known UID keeps the record
	// comparable.
	uid = cmp.Or(uid, cmp.Or(in.keys.names[in.self.name].value.GetUid(), in.self.heldUID))
	op, err := in.keys.take(verbClaim, &messages.NodeRecord{Id: id, Name: in.self.name, Uid: uid})
	if err != nil {
		return pending(id, "%v", err)
	}
	return claim{state: messages.ClaimState_CLAIM_PENDING, id: id, reason: fmt.Sprintf("claiming ID %d again", id), op: op}
}

// adopt holds an ID that the store has under the name of this node. This process must write the
// record at least once, because the write tells collectors that the node is alive.
func (in input) adopt(id uint32, uid string) claim {
	k, self := in.keys, in.self
	idEntry, nameEntry := k.ids[id], k.names[self.name]
	stored := idEntry.value.GetUid()
	// An undecodable id record has no UID. The name record of the pair has the same UID.
	if !idEntry.known {
		stored = nameEntry.value.GetUid()
	}
	if stored != "" && uid != "" && stored != uid && self.held == id && self.heldUID == uid {
		return fenced(id, "ID %d of node %s has been taken over by another agent of that name, whose Node has the UID %s", id, self.name, stored)
	}
	want := &messages.NodeRecord{Id: id, Name: self.name, Uid: cmp.Or(uid, stored)}
	written := idEntry.err == nil && nameEntry.err == nil && proto.Equal(idEntry.value, want) && proto.Equal(nameEntry.value, want)
	held := claim{state: messages.ClaimState_CLAIM_HELD, id: id, uid: want.GetUid()}
	if written && self.confirmed {
		// No other node can take a surplus ID while it has a record.
		if surplus := slices.DeleteFunc(slices.Clone(k.owners[self.name]), func(x uint32) bool { return x == id }); len(surplus) > 0 {
			held.op = k.dropIDs(self.name, surplus)
		}
		return held
	}
	op, err := k.take(verbAdopt, want)
	if err != nil {
		return pending(id, "%v", err)
	}
	if self.held == id && idEntry.known {
		// The ID is undisputed, and only the record is out of date. Until the record is written,
		// the ID is held under its old UID.
		held.op, held.uid = op, cmp.Or(stored, held.uid)
		return held
	}
	return claim{state: messages.ClaimState_CLAIM_PENDING, id: id, reason: fmt.Sprintf("adopting ID %d", id), op: op}
}
