package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// maxCandidates is the number of IDs that one operation offers. etcd limits a nested transaction to
// 128 operations, and a candidate takes two.
const maxCandidates = 32

// shownProblems is the number of undecodable keys that a reason names.
const shownProblems = 3

// input is everything that a decision depends on. Decisions do not modify it.
type input struct {
	// store is the name of the store, for reasons.
	store string
	// keys is the keyspace at one revision; nil before the first list.
	keys *keyspace
	self identity
	view view
	want wanted
	// absent are the nodes that are missing in Kubernetes at now, by name.
	absent map[string]absence
	// grace is GracePeriod with the jitter of this observer.
	grace time.Duration
	now   time.Time
	// connected is true if the store answered the latest request. Otherwise failure is the error.
	connected bool
	failure   string
	// candidates is the number of IDs to offer for a new ID.
	candidates int
}

// decision is the state of this node and its next transaction.
type decision struct {
	claim     messages.ClaimState
	id        uint32
	uid       string
	reason    string
	published bool
	// op is nil if there is nothing to write.
	op *operation
	// wake is the time at which the decision changes without further input; zero = never.
	wake time.Time
}

// decide is the whole logic of node sync as a pure function: the ID first, then the addresses, then
// the IDs of other nodes. The revisions of all keys on which the decision depends guard its
// transaction. A decision on an old snapshot fails and does no harm.
func decide(in input) decision {
	if in.keys == nil {
		id := in.self.remembered(in.view.nodes[in.self.name].GetUid())
		return decision{id: id, reason: Unconfirmed(id, cmp.Or(in.failure, "waiting for "+in.store))}
	}
	claimed := decideClaim(in)
	published, publishReason, publish := decidePublish(in)
	d := decision{
		claim: claimed.state, id: claimed.id, uid: claimed.uid, op: claimed.op,
		published: published && claimed.state == messages.ClaimState_CLAIM_HELD,
	}
	if claimed.state == messages.ClaimState_CLAIM_HELD && d.op == nil {
		d.op = publish
	}
	if claimed.state == messages.ClaimState_CLAIM_HELD && d.op == nil {
		d.op, d.wake = decideCollect(in)
	}
	d.reason = reasons(claimed.reason, publishReason, in.failure, in.keys.trouble())
	return d
}

// Unconfirmed returns the reason of a claim until the store has answered this process for the first
// time. It begins with the ID of an earlier process, if there is one, because the node keeps this
// ID and claims no other.
func Unconfirmed(id uint32, reason string) string {
	if id == 0 {
		return reason
	}
	return fmt.Sprintf("ID %d, which this node has used, is remembered and unconfirmed; %s", id, reason)
}

// trouble names a few of the undecodable keys.
func (k *keyspace) trouble() string {
	if len(k.problems) == 0 {
		return ""
	}
	keys := slices.Sorted(maps.Keys(k.problems))
	var b strings.Builder
	for i, key := range keys[:min(len(keys), shownProblems)] {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%.300s: %v", key, k.problems[key])
	}
	if more := len(keys) - shownProblems; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// reasons joins the parts that are not empty.
func reasons(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// candidatesAfter returns the number of IDs to offer after a number of conflicts. It starts with
// one and quadruples, so that many nodes that join at once need few rounds.
func candidatesAfter(conflicts int) int {
	return min(maxCandidates, 1<<(2*min(conflicts, 8)))
}
