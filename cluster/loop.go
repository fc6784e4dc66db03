package cluster

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/troupe-vpp/troupe/messages"
)

// conflictsBeforeRelist is the number of consecutive conflicts after which the loop requests a new
// list, because its keyspace may be wrong.
const conflictsBeforeRelist = 8

const (
	// longest is the time that the loop waits if nothing is due.
	longest = time.Hour
	// emitDistance is the shortest time between two states that differ only in peers.
	emitDistance = 20 * time.Millisecond
)

// loop owns the state of a running Syncer. One goroutine runs it and is the only user of all
// fields: it receives from the follower, the prober, the writer and the callers, decides, emits
// states, and runs at most one transaction at a time.
type loop struct {
	// newLoop sets these fields.
	syncer   *Syncer
	follower *follower
	out      func(*messages.ClusterState)
	// write executes an operation in another goroutine, which sends wrote.
	write func(*operation)
	log   *slog.Logger

	// Input and output: the state on which decisions depend, and the state that was emitted
	// last.
	in     input
	roster roster
	// stale is true while the roster has changes that were not emitted.
	stale      bool
	last       *messages.ClusterState
	emitted    time.Time
	linkError  string
	writeError string

	// touched are the nodes whose keys have changed since the last check for absent nodes.
	// lookAnew requires a check of all nodes, after any other change.
	touched  []string
	lookAnew bool

	// When the next transaction may start: mayWrite and holdUntil read these fields.
	writing bool
	// awaited is the revision of our last write. The next transaction waits until the watch has
	// delivered it, or until awaitedUntil, because a decision without this write would be
	// wrong.
	awaited      int64
	awaitedUntil time.Time
	// notBefore is the end of the back-off, on the clock of the machine.
	notBefore           time.Time
	conflicts, failures wait.Backoff
	attempts            int // that conflicted since the last success
}

func newLoop(s *Syncer, f *follower, out func(*messages.ClusterState)) *loop {
	cfg := s.cfg
	return &loop{
		syncer: s, follower: f, out: out, log: s.log, stale: true,
		roster:    roster{nodes: map[string]*messages.ClusterNode{}},
		conflicts: cfg.delays(1), failures: cfg.delays(errorFactor),
		in: input{
			store: s.traits.name,
			self:  identity{name: cfg.NodeName, lastID: cfg.LastID, lastUID: cfg.LastUID},
			grace: cfg.GracePeriod + rand.N(cfg.GracePeriod/10+1),
		},
	}
}

// run runs the loop until ctx ends. Every wake-up leads to a new decision, whatever its cause,
// because decisions depend only on the state.
func (l *loop) run(ctx context.Context, inbox <-chan any) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		l.takeRequests()
		timer.Reset(l.step())
		select {
		case <-ctx.Done():
			return
		case <-l.syncer.fresh:
		case <-timer.C:
		case m := <-inbox:
			l.take(m)
			l.drain(inbox)
		}
	}
}

// drain receives all queued messages, so that a burst leads to one decision.
func (l *loop) drain(inbox <-chan any) {
	for range cap(inbox) {
		select {
		case m := <-inbox:
			l.take(m)
		default:
			return
		}
	}
}

// takeRequests takes over the latest arguments of SetNodes and Publish.
func (l *loop) takeRequests() {
	v, w := l.syncer.latest()
	l.in.want = w
	before := l.in.view
	if v.serial == before.serial {
		return
	}
	l.in.view, l.lookAnew = v, true
	if touched := before.touched(v); len(touched) > 0 {
		// Only the touched nodes are joined again, because a cluster may have thousands of
		// nodes.
		l.stale = l.roster.refresh(touched, l.in.keys, v) || l.stale
	}
}

// take applies one message to the state.
func (l *loop) take(m any) {
	switch m := m.(type) {
	case listed:
		l.takeList(m)
	case changed:
		if l.in.keys != nil {
			touched := l.in.keys.apply(m.changes)
			l.touched = append(l.touched, touched...)
			l.stale = l.roster.refresh(touched, l.in.keys, l.in.view) || l.stale
		}
		l.probed(nil)
	case probed:
		l.probed(m.err)
	case wrote:
		l.takeOutcome(m)
	default:
		panic("cluster: unknown message")
	}
}

// takeList replaces the keyspace. An older revision means that the store has lost its data, so that
// no earlier write can arrive any more.
func (l *loop) takeList(m listed) {
	old := l.in.keys
	if old == nil {
		old = newKeyspace(l.syncer.traits.layout)
	}
	if m.revision < old.revision {
		l.log.Warn("node store has lost data", "revision", m.revision, "revisionBefore", old.revision)
		l.awaited = 0
	}
	l.in.keys, l.lookAnew = old.replaced(m.revision, m.pairs), true
	l.stale = l.roster.refreshAll(l.in.keys, l.in.view) || l.stale
	l.probed(nil)
}

// probed records whether the store answers. It logs only changes, because the prober calls it at
// every interval.
func (l *loop) probed(err error) {
	connected := err == nil
	if l.in.connected != connected || l.last.GetGeneration() == 0 {
		l.log.Info("connection of the node store changed", "store", l.syncer.traits.name, "connected", connected, "err", err)
	}
	l.in.connected, l.linkError = connected, ""
	if err != nil {
		l.linkError = l.syncer.traits.name + ": " + err.Error()
	}
}

// takeOutcome applies the outcome of a transaction.
func (l *loop) takeOutcome(m wrote) {
	l.writing = false
	switch {
	case m.err != nil:
		l.writeError = l.syncer.traits.name + ": " + m.err.Error()
		l.holdBack(l.failures.Step())
		l.log.Warn("transaction of the node store failed, retrying", "op", m.op.verb, "about", m.op.about, "err", m.err)
	case !m.ok:
		l.attempts++
		l.holdBack(max(l.conflicts.Step(), l.turn()))
		l.log.Debug("transaction of the node store conflicted, retrying", "op", m.op.verb, "about", m.op.about, "attempts", l.attempts)
		if l.attempts%conflictsBeforeRelist == 0 {
			l.follower.askRelist()
		}
	default:
		l.writeError = ""
		l.conflicts, l.failures, l.attempts = l.syncer.cfg.delays(1), l.syncer.cfg.delays(errorFactor), 0
		l.awaited, l.awaitedUntil = m.revision, time.Now().Add(l.syncer.cfg.RequestTimeout)
		if m.op.verb == verbClaim || m.op.verb == verbAdopt {
			// Only a write of this process proves that it holds the ID, because an
			// earlier process may have written the record in the store.
			l.in.self.confirmed = true
		}
		l.log.Info("transaction of the node store committed", "op", m.op.verb, "about", m.op.about, "revision", m.revision)
	}
}

// turn returns the delay after a conflict. It lets nodes without an ID claim one after the other,
// by name; they know each other from Kubernetes. It starts again at maxTurn, because nodes that
// never start would prolong the delay.
func (l *loop) turn() time.Duration {
	if l.in.self.held != 0 || l.in.keys == nil {
		return 0
	}
	t := l.syncer.traits
	return time.Duration(l.in.view.ahead(l.in.keys, l.in.self.name)) * t.turn % t.maxTurn
}

func (l *loop) holdBack(d time.Duration) { l.notBefore = time.Now().Add(d) }

// step decides, emits the state, starts the next transaction if it may, and returns the longest
// time until the next step.
func (l *loop) step() time.Duration {
	l.in.now = l.syncer.cfg.Now()
	l.in.candidates = 1
	if l.mayWrite() {
		l.in.candidates = candidatesAfter(l.attempts)
	}
	l.lookForAbsent()
	d := l.decide()
	if d.op == nil && !l.writing && l.writeError != "" {
		// The transaction was committed although its answer was lost, or it is no longer
		// needed.
		l.writeError = ""
		d = l.decide()
	}
	if d.claim == messages.ClaimState_CLAIM_HELD {
		l.in.self.held, l.in.self.heldUID = d.id, d.uid
	}
	return min(l.emit(d), l.carryOut(d))
}

func (l *loop) decide() decision {
	l.in.failure = reasons(l.linkError, l.writeError)
	return decide(l.in)
}

// carryOut starts the transaction of a decision, unless another transaction runs or the back-off
// has not ended. It returns the time until it may start.
func (l *loop) carryOut(d decision) time.Duration {
	switch {
	case d.op == nil && d.wake.IsZero():
		return longest
	case d.op == nil:
		return max(d.wake.Sub(l.in.now), 0)
	case l.writing || !l.in.connected:
		return longest // the outcome, or the next probe, arrives in the inbox
	}
	if left := time.Until(l.holdUntil()); left > 0 {
		return left
	}
	// The watch has not delivered our last write in time. The operation is guarded, so an
	// attempt does no harm, and a new list ends the wait.
	if l.in.keys.revision < l.awaited {
		l.awaited = 0
		l.follower.askRelist()
	}
	l.writing = true
	l.write(d.op)
	return longest
}

// lookForAbsent updates the absent nodes. It looks at all nodes only if lookAnew is set.
func (l *loop) lookForAbsent() {
	switch in := &l.in; {
	case in.keys == nil:
		return
	case l.lookAnew:
		in.absent = observeAbsence(in.absent, in.keys, in.view, in.self.name, in.now)
	default:
		observeTouched(in.absent, l.touched, in.keys, in.view, in.self.name, in.now)
	}
	l.touched, l.lookAnew = nil, false
}

// mayWrite reports whether a transaction may start now.
func (l *loop) mayWrite() bool {
	return l.in.keys != nil && l.in.connected && !l.writing && time.Until(l.holdUntil()) <= 0
}

// holdUntil returns the time at which the next transaction may start without further messages.
func (l *loop) holdUntil() time.Time {
	if l.in.keys.revision < l.awaited && l.awaitedUntil.After(l.notBefore) {
		return l.awaitedUntil
	}
	return l.notBefore
}

// emit calls out with the state if it differs from the last one. States that differ only in peers
// keep emitDistance, so that many joining nodes do not cause one state each. It returns the time
// until the next state.
func (l *loop) emit(d decision) time.Duration {
	state := &messages.ClusterState{
		Claim: d.claim, Id: d.id, Reason: d.reason, Connected: l.in.connected, Published: d.published, Self: l.in.self.name,
	}
	last := l.last
	if last != nil && last.GetClaim() == state.Claim && last.GetId() == state.Id && last.GetReason() == state.Reason &&
		last.GetConnected() == state.Connected && last.GetPublished() == state.Published {
		if !l.stale {
			return longest
		}
		// Changes of peers are delayed; changes of this node's own claim never are.
		if left := emitDistance - time.Since(l.emitted); left > 0 {
			return left
		}
	}
	if last == nil || last.GetClaim() != state.Claim || last.GetId() != state.Id {
		l.log.Info("node ID claim changed", "state", d.claim.String(), "id", d.id, "reason", d.reason)
	}
	state.Nodes = l.roster.snapshot()
	state.Generation = last.GetGeneration() + 1
	l.stale, l.last, l.emitted = false, state, time.Now()
	l.out(state)
	return longest
}
