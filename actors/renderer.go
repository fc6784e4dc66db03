package actors

import (
	"net/netip"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// batchRows is how many rows are brought to VPP in one batch: several of its windows, short enough to stay responsive.
const batchRows = 1024

// renderer makes VPP's NAT44 equal to what the services want. It owns what it believes VPP holds (have) and what the services want
// (ledger); the difference goes to VPP in batches, one at a time, over one stream.
//
// What VPP holds is unknown at the start, after VPP was away and after an operation without an answer; then it is read back. Nothing that
// an earlier run put there is removed before every service of the epoch has spoken. Requests of a dead predecessor cannot interfere: they
// stand before our dump in the same stream.
type renderer struct {
	reporter
	enrolment
	outlet
	*ledger

	swept  bool // since the last read: the barrier has been passed and the leftovers of earlier runs were put on the list
	opened bool // the barrier has been passed once

	set      *messages.InterfaceSet
	have     *nat44.State // nil = unknown
	globals  bool         // settings and interface roles must be looked at
	hairpins []netip.Addr // addresses of ours that were in use before
	outside  exterior     // external configuration
	work     *work        // under way
}

// work is one read or one batch.
type work struct {
	session uint64
	keys    []nat44.Key
	ops     []nat44.Op
	began   time.Time
	reason  string // of a read
}

// readDone and applied are the results of work.
type (
	readDone struct {
		*work
		state *nat44.State
		lists *accessLists // nil = not read
		err   error
	}
	applied struct {
		*work
		results []nat44.OpResult
	}
)

// rendererTick repeats what was not answered and retries what failed.
type rendererTick struct{}

func newRenderer(d *Deps) runtime.Behaviour {
	r := &renderer{reporter: reporter{part: "nat44", roles: true}, outlet: newOutlet(d, "nat44"), ledger: newLedger(d.NAT44)}
	r.enrolment = newEnrolment("nat44", r)
	return r
}

// Start satisfies runtime.Behaviour.
func (r *renderer) Start(c *runtime.Context) {
	r.enrol(c)
	r.health(c)
	r.tick(c)
	r.keep(c)
	c.Ready()
}

// Stop satisfies runtime.Behaviour: VPP keeps what it has.
func (*renderer) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (r *renderer) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Render:
		r.render(c, m)
	case *messages.Begin:
		if r.renews(m) {
			first := r.begun == nil
			r.nodeChanged(c, m.GetNode())
			r.begin(c, m)
			if first {
				r.answerEach(c, r.customers()) // what could not be said before
			}
		}
	case *messages.LinkState:
		gone, reborn := r.linkChanged(m)
		if gone {
			r.have = nil
			r.guard.forget()
			r.guard.forgive()
		}
		if reborn {
			r.forgiveAll()
		}
	case *messages.InterfaceSet:
		if m.GetGeneration() > r.set.GetGeneration() {
			r.enter(m)
		}
	case *messages.Verify:
		r.asked(m)
	case *messages.Resync:
		r.resync(c, m)
	case *externalWants:
		r.adoptExternal(c, m)
	case *readDone:
		r.read(c, m)
	case *applied:
		r.applied(c, m)
	case *guardRead:
		r.guardRead(c, m)
	case *guardApplied:
		r.guardApplied(c, m)
	case *rendererTick:
		r.tick(c)
	case *vigilTick: // the next look at VPP is due
	case *probeTick:
		r.tryAgain(c)
	case *healthBeat:
		r.keep(c)
		r.repeat(c)
		return
	case *RowsQuery:
		c.Reply(r.rows(m))
		return
	case *DiffQuery:
		r.diff(c)
		return
	case *diffDone:
		c.Send(m.to, m.page)
		return
	}
	r.pump(c)
	r.health(c)
	r.tellExternal(c)
}

// adopt changes what a service wants. Rows that VPP is known to hold as they are wanted now need no work, and the answer says so.
func (r *renderer) adopt(c *runtime.Context, key string, generation, hash uint64, view *messages.ServiceView) {
	names := r.put(key, generation, hash, view)
	if r.have != nil && r.work == nil {
		for _, k := range r.claims.Of(key) {
			if r.dirty[k] && r.asWanted(k) {
				r.clean(k)
			}
		}
	}
	for _, name := range names {
		r.answer(c, name)
	}
}

// standing describes what became of a service in VPP, as far as it is known. What cannot be rendered exactly depends on settings that are derived
// from the node; before it is known nothing is said of that, or operators would be told of what will not be.
func (r *renderer) standing(key string) *messages.RenderAck {
	ack := r.ack(r.name, key, r.have)
	if r.begun == nil {
		ack.Approximations = nil
	}
	return ack
}

// answerAll tells every service with a claim on one of the rows where it stands, and those that are leaving.
func (r *renderer) answerAll(c *runtime.Context, keys []nat44.Key) {
	for _, name := range r.concerned(keys) {
		r.answer(c, name)
	}
}

// pump starts the next piece of work, if there is any and VPP is there.
func (r *renderer) pump(c *runtime.Context) {
	switch {
	case r.work != nil || !r.open(c):
		return
	case r.have == nil || r.doubts(c):
		r.startRead(c)
		return
	case !r.located():
		return // roles come before rows, or every row is walked for every role
	case r.protect(c):
		return
	case r.passed() && !r.swept:
		r.sweep(c)
	}
	r.startBatch(c)
	r.unprotect(c)
	if r.work == nil && r.vigil.due(c.Now()) {
		r.startRead(c)
	}
}

// enter adopts the interfaces when all is known about them: a role that comes later would have every row walked for it and leave entries in
// VPP's routes, and a client that is taken for another one would be dropped or let in.
func (r *renderer) enter(m *messages.InterfaceSet) {
	if m.GetComplete() {
		r.guard.enter(r.set, m)
		r.set, r.globals = m, true
	}
}

// located reports whether the interfaces of this VPP are known.
func (r *renderer) located() bool { return r.set != nil && r.set.GetBoot() == r.link.GetBoot() }

// held is the row that VPP holds under a key; nil = none of ours. What VPP holds must be known.
func (r *renderer) held(k nat44.Key) *nat44.Row {
	if row, ok := r.have.Rows[k]; ok {
		return &row
	}
	return nil
}

// asWanted reports whether VPP holds a row as it is wanted. What VPP holds must be known.
func (r *renderer) asWanted(k nat44.Key) bool { return len(nat44.DiffRow(r.held(k), r.wanted(k))) == 0 }

// tick repeats and retries.
func (r *renderer) tick(c *runtime.Context) {
	c.After(r.deps.Timing.Retry, &rendererTick{})
	r.remind(c)
	r.inquire(c)
	r.outside.stale = true
	r.retry(c.Now())
	r.cause = "" // the numbers in the reason may have changed
}

// tryAgain tries what VPP refused: what is due, and one of each kind that is not.
func (r *renderer) tryAgain(c *runtime.Context) {
	r.probing = false
	r.retry(c.Now())
	r.probe()
	r.guard.probe(c.Now())
	r.probeLater(c, len(r.failed) > 0 || r.guard.err != nil)
}
