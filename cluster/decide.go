package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// maxRungs is how many candidates one transaction tries. etcd allows a nesting that uses 128 operations in all, and every rung takes two.
const maxRungs = 32

// shownProblems is how many undecodable keys are named in a reason.
const shownProblems = 3

// input is all that a decision depends on. Nothing in it is changed.
type input struct {
	// keys is the keyspace at one revision; nil before the first list.
	keys *keyspace
	self identity
	view view
	want wanted
	// absent are the sightings of observeAbsence at now.
	absent map[string]sighting
	// grace is GracePeriod with this observer's share of jitter.
	grace time.Duration
	now   time.Time
	// connected and failure are the last that was heard of etcd.
	connected bool
	failure   string
	// rungs is how many candidates to offer for a new ID.
	rungs int
}

// decision is where this node stands and the next transaction.
type decision struct {
	claim     messages.ClaimState
	id        uint32
	uid       string
	reason    string
	published bool
	// op is nil when there is nothing to write.
	op *operation
	// wake is when time alone changes the decision; zero = never.
	wake time.Time
}

// decide is the whole logic of node sync, as a function: the ID first, then the addresses, then the IDs of others. A transaction that it
// returns is guarded by all that the decision rests on, so that a decision on an old snapshot can do no harm.
func decide(in input) decision {
	if in.keys == nil {
		id := in.self.remembered(in.view.nodes[in.self.name].GetUid())
		return decision{id: id, reason: Unconfirmed(id, or(in.failure, "waiting for etcd"))}
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

// Unconfirmed is the reason of a claim while etcd has said nothing in this life: it begins with the ID of an earlier one, if there was any.
// With that ID the node goes on, and with no other.
func Unconfirmed(id uint32, reason string) string {
	if id == 0 {
		return reason
	}
	return fmt.Sprintf("ID %d, which this node has used, is remembered and unconfirmed; %s", id, reason)
}

// trouble names the keys that nobody understands, a few of them.
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

// reasons joins what there is to say.
func reasons(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// rungsAfter is how many candidates to offer after so many conflicts: one as long as nobody competes, then quickly more.
func rungsAfter(conflicts int) int {
	return min(maxRungs, 1<<(2*min(conflicts, 8)))
}
