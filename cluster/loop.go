package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// conflictsBeforeRelist is after how many lost races in a row the picture itself is doubted.
const conflictsBeforeRelist = 8

// longest is how long the loop waits when nothing is due.
const longest = time.Hour

// loop owns the state of a running Syncer. One goroutine runs it: it takes in what the follower, the prober, the writer and the callers
// say, decides, emits, and lets at most one transaction run at a time.
type loop struct {
	syncer   *Syncer
	follower *follower
	out      func(*messages.ClusterState)
	// write carries out an operation in another goroutine, which answers with wrote.
	write func(*operation)
	log   *slog.Logger

	in     input
	roster roster
	// stale is true until the roster has been emitted as it is.
	stale      bool
	last       *messages.ClusterState
	linkError  string
	writeError string

	writing bool
	// awaited is the revision of our last write; no transaction is started before the watch has shown it, or awaitedUntil is over.
	awaited      int64
	awaitedUntil time.Time
	// notBefore holds back the next transaction, on the clock of the machine.
	notBefore           time.Time
	conflicts, failures delays
}

func newLoop(s *Syncer, f *follower, out func(*messages.ClusterState)) *loop {
	cfg := s.cfg
	return &loop{
		syncer: s, follower: f, out: out, log: s.log, stale: true,
		roster:    roster{nodes: map[string]*messages.ClusterNode{}},
		conflicts: delays{min: cfg.BackoffMin, max: cfg.BackoffMax, rand: cfg.Rand},
		failures:  delays{min: cfg.BackoffMin * errorFactor, max: cfg.BackoffMax * errorFactor, rand: cfg.Rand},
		in: input{
			self:    identity{name: cfg.NodeName, lastID: cfg.LastID, lastUID: cfg.LastUID},
			grace:   cfg.GracePeriod + time.Duration(cfg.Rand.Int64N(int64(cfg.GracePeriod)/10+1)),
		},
	}
}

// run works until ctx ends.
func (l *loop) run(ctx context.Context, inbox <-chan any) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		l.hearCallers()
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

// drain takes what is waiting already, so that a burst costs one decision.
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

// hearCallers takes over the latest arguments of SetNodes and Publish.
func (l *loop) hearCallers() {
	v, w := l.syncer.latest()
	l.in.want = w
	before := l.in.view
	if v.serial == before.serial {
		return
	}
	l.in.view = v
	if touched := before.touched(v); len(touched) > 0 {
		l.stale = l.roster.refresh(touched, l.in.keys, v) || l.stale
	}
	if before.current && !v.current {
		l.in.absent = nil
	}
}

// take changes the state by one message.
func (l *loop) take(m any) {
	switch m := m.(type) {
	case listed:
		l.takeList(m)
	case changed:
		if l.in.keys != nil {
			l.stale = l.roster.refresh(l.in.keys.apply(m.changes), l.in.keys, l.in.view) || l.stale
		}
		l.heard(nil)
	case heard:
		l.heard(m.err)
	case wrote:
		l.takeOutcome(m)
	default:
		panic("cluster: message that nobody sends")
	}
}

func (l *loop) takeList(m listed) {
	old := l.in.keys
	if old == nil {
		old = newKeyspace(l.follower.layout)
	}
	if m.revision < old.revision {
		l.log.Warn("etcd has lost data", "revision", m.revision, "revision_before", old.revision)
		l.awaited = 0
	}
	l.in.keys = old.replaced(m.revision, m.pairs)
	l.stale = l.roster.refreshAll(l.in.keys, l.in.view) || l.stale
	l.heard(nil)
}

// heard notes whether etcd answers.
func (l *loop) heard(err error) {
	connected := err == nil
	if l.in.connected != connected || l.last.GetGeneration() == 0 {
		l.log.Info("etcd", "connected", connected, "err", err)
	}
	l.in.connected, l.linkError = connected, ""
	if err != nil {
		l.linkError = "etcd: " + err.Error()
	}
}

// takeOutcome notes what became of a transaction.
func (l *loop) takeOutcome(m wrote) {
	l.writing = false
	switch {
	case m.err != nil:
		l.writeError = "etcd: " + m.err.Error()
		l.holdBack(l.failures.next())
		l.log.Warn("transaction failed", "op", m.op.verb, "about", m.op.about, "err", m.err)
	case !m.ok:
		l.holdBack(l.conflicts.next())
		l.log.Debug("transaction lost a race", "op", m.op.verb, "about", m.op.about, "attempts", l.conflicts.attempts)
		if l.conflicts.attempts%conflictsBeforeRelist == 0 {
			l.follower.askRelist()
		}
	default:
		l.writeError = ""
		l.conflicts.reset()
		l.failures.reset()
		l.awaited, l.awaitedUntil = m.revision, time.Now().Add(l.syncer.cfg.RequestTimeout)
		if m.op.verb == verbClaim || m.op.verb == verbAdopt {
			l.in.self.confirmed = true
		}
		l.log.Info("transaction done", "op", m.op.verb, "about", m.op.about, "revision", m.revision)
	}
}

func (l *loop) holdBack(d time.Duration) { l.notBefore = time.Now().Add(d) }

// step decides, emits, starts a transaction if there is one to start, and returns when to look again at the latest.
func (l *loop) step() time.Duration {
	l.in.now = l.syncer.cfg.Now()
	l.in.failure = reasons(l.linkError, l.writeError)
	l.in.rungs = rungsAfter(l.conflicts.attempts)
	if l.in.keys != nil {
		l.in.absent = observeAbsence(l.in.absent, l.in.keys, l.in.view, l.in.self.name, l.in.now)
	}
	d := decide(l.in)
	if d.claim == messages.ClaimState_CLAIM_HELD {
		l.in.self.held, l.in.self.heldUID = d.id, d.uid
	}
	l.emit(d)
	switch {
	case d.op == nil && d.wake.IsZero():
		return longest
	case d.op == nil:
		return max(d.wake.Sub(l.in.now), 0)
	case l.writing || !l.in.connected:
		return longest // the answer, or the next sign of life, comes by the inbox
	}
	if left := time.Until(l.holdUntil()); left > 0 {
		return left
	}
	if l.in.keys.revision < l.awaited {
		l.awaited = 0
		l.follower.askRelist()
	}
	l.writing = true
	l.write(d.op)
	return longest
}

// holdUntil is when the next transaction may start, as long as nothing else is heard.
func (l *loop) holdUntil() time.Time {
	if l.in.keys.revision < l.awaited && l.awaitedUntil.After(l.notBefore) {
		return l.awaitedUntil
	}
	return l.notBefore
}

// emit hands out the state if it differs from the last one.
func (l *loop) emit(d decision) {
	state := &messages.ClusterState{
		Claim: d.claim, Id: d.id, Reason: d.reason, Connected: l.in.connected, Published: d.published, Self: l.in.self.name,
	}
	last := l.last
	if last != nil && !l.stale && last.GetClaim() == state.Claim && last.GetId() == state.Id && last.GetReason() == state.Reason &&
		last.GetConnected() == state.Connected && last.GetPublished() == state.Published {
		return
	}
	if last.GetClaim() != state.Claim || last.GetId() != state.Id || last == nil {
		l.log.Info("claim", "state", d.claim.String(), "id", d.id, "reason", d.reason)
	}
	state.Nodes = l.roster.snapshot()
	state.Generation = last.GetGeneration() + 1
	l.stale, l.last = false, state
	l.out(state)
}
