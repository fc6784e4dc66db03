package live

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
)

// Intervals and timeouts of the observation of a fault.
const (
	lookEvery = 20 * time.Millisecond
	// the pause after an observation is this many times its duration: with 10,000 services one
	// takes long
	idleShare    = 10
	releaseEvery = time.Second
	askFor       = 2 * time.Second
	readFor      = 10 * time.Second
)

// await returns when the fault has ended: stopped, at its deadline, or because the definition says
// that it is over.
func (l *Live) await(a *active) {
	deadline := time.NewTimer(time.Until(a.record.Until))
	defer deadline.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	by := "deadline"
	for waiting := true; waiting; {
		select {
		case <-a.ended:
			return
		case <-deadline.C:
			waiting = false
		case <-look.C:
			if a.def.over != nil && a.def.over(a) {
				by, waiting = "done", false
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(a, by)
}

// verdict is the outcome of a fault.
type verdict struct {
	state         State
	recovered     time.Duration
	writes, reads uint64
	problem       string
}

// watch observes the agent until it has been well for Config.Quiet without interruption, or not
// within Config.Recovery.
func (l *Live) watch(a *active) (v verdict) {
	ended := time.Now()
	deadline, released, since := ended.Add(l.cfg.Recovery), ended, time.Time{}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-l.ctx.Done():
			return verdict{state: StateUnknown, problem: "the agent stops"}
		}
		now := time.Now()
		if l.others() {
			// a problem may be theirs, so the recovery time starts when the last of
			// them has ended
			deadline = now.Add(l.cfg.Recovery)
		}
		problem := l.unwell(a)
		look.Reset(max(lookEvery, idleShare*time.Since(now)))
		switch {
		case problem != "" && now.After(deadline):
			return verdict{state: StateNotWell, problem: problem, writes: l.writes(a), reads: l.reads(a)}
		case problem != "":
			since = time.Time{}
			if now.Sub(released) > releaseEvery {
				// a kill, or a hook that ran when the fault ended, may have led to
				// a quarantine
				released = now
				if state, found := l.system.Actor(a.path); found && state.State == runtime.StateQuarantined {
					_ = l.system.ResetBackoff(a.path)
				}
			}
		case since.IsZero():
			since = now
		case now.Sub(since) >= l.cfg.Quiet:
			v = verdict{state: StateWell, recovered: since.Sub(ended), writes: l.writes(a), reads: l.reads(a)}
			v.problem = l.readBack()
			if v.problem != "" {
				v.state = StateNotWell
			}
			return v
		}
	}
}

// others reports whether other faults are active.
func (l *Live) others() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.active) > 0
}

// writes counts the changes of VPP's configuration since the injection.
func (l *Live) writes(a *active) uint64 { return l.cfg.World.Usage().Writes - a.began.writes }

func (l *Live) reads(a *active) uint64 { return l.cfg.World.Usage().RowReads - a.began.reads }

// unwell names a problem that did not exist before the fault; "" = there is none.
func (l *Live) unwell(a *active) string {
	if a.box == nil {
		return l.worsened(a)
	}
	box, found := l.system.Mailbox(a.path)
	if !found {
		if address.Supervisor(a.path) == address.Services { // the service may be deleted
			return l.worsened(a)
		}
		return a.path + " is gone"
	}
	state := box.State()
	switch {
	case state.State != runtime.StateIdle && state.State != runtime.StateRunning:
		return fmt.Sprintf("%s is %s", a.path, state.State)
	case a.def.kills(&a.Fault) && box == a.box && state.Incarnation <= a.began.incarnation:
		return a.path + " has not been restarted"
	}
	return l.worsened(a)
}

// worsened names a problem of the whole agent that did not exist before the fault; "" = there is
// none.
func (l *Live) worsened(a *active) string {
	ctx, cancel := context.WithTimeout(l.ctx, askFor)
	defer cancel()
	return worse(a.began.complaints, complaints(ctx, l.cfg.World))
}

// readBack compares VPP with the desired state; "" = they are equal.
func (l *Live) readBack() string {
	ctx, cancel := context.WithTimeout(l.ctx, readFor)
	defer cancel()
	operations, err := l.cfg.World.Diff(ctx)
	switch {
	case err != nil:
		return "VPP could not be read back: " + err.Error()
	case len(operations) > 0:
		return fmt.Sprintf("VPP differs from what it should hold by %d operations, first: %s", len(operations), operations[0])
	}
	return ""
}

// conclude records the outcome of a fault.
func (l *Live) conclude(a *active, v verdict) {
	l.mu.Lock()
	defer l.mu.Unlock() // with the entry of the journal: a run ends when its faults are over
	r := a.record
	l.healing--
	r.State, r.Recovered, r.VPPWrites, r.VPPReads = v.state, Duration(v.recovered.Round(time.Millisecond)), v.writes, v.reads
	if r.Outcome = v.problem; v.state == StateWell {
		r.Outcome = fmt.Sprintf("well again after %v; VPP: %d writes, %d row reads, holds what it should", r.Recovered, v.writes, v.reads)
	}
	done := *r
	took := done.Ended.Sub(done.Began).Round(time.Millisecond)
	text := fmt.Sprintf("#%d %s ended (%s) after %v, struck %d", done.ID, done.What.Kind, done.EndedBy, took, done.Struck)
	if v.state == StateWell {
		text += "; " + done.Outcome
	}
	l.cfg.Log.Info("chaos fault ended", "id", done.ID, "actor", done.Actor, "by", done.EndedBy, "struck", done.Struck, "state", string(done.State),
		"outcome", done.Outcome)
	l.journal(done.Actor, fmt.Sprintf("chaos/%d", done.ID), text, v.problem)
}
