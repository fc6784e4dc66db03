package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// startBatch sends the operations for the rows in the queue: settings and roles first, removals last. Rows that need none are passed over.
func (r *renderer) startBatch(c *runtime.Context) {
	w := &work{session: r.link.GetSession(), began: c.Now()}
	if r.globals {
		w.ops = nat44.DiffGlobals(r.have, r.globalsWanted())
		if r.globals = len(w.ops) > 0; !r.globals {
			r.interfaces = r.set.GetGeneration()
		}
	}
	var quiet []nat44.Key
	var removals []nat44.Op
	for len(w.ops)+len(removals) < batchRows && len(r.queue) > 0 {
		for _, k := range r.batch(batchRows - len(w.keys)) {
			want := r.wanted(k)
			ops := nat44.DiffRow(r.held(k), want)
			switch {
			case len(ops) == 0:
				r.clean(k)
				quiet = append(quiet, k)
			case want != nil && (r.passed() || !r.anothers(k, want)):
				w.keys, w.ops = append(w.keys, k), append(w.ops, ops...)
			case want == nil && r.passed():
				w.keys, removals = append(w.keys, k), append(removals, ops...)
			default: // somebody who has not spoken may want it: it stays dirty, and is listed again when the barrier has been passed
			}
		}
	}
	w.ops = append(w.ops, removals...)
	r.answerAll(c, quiet)
	if len(w.ops) == 0 {
		if r.pending() == 0 && !r.full.IsZero() {
			r.synced(c, r.full) // VPP held everything already
		}
		return
	}
	r.work = w
	post, caller := c.Post(), r.deps.Link
	c.Go("apply", func(ctx context.Context) { post(&applied{w, nat44.Apply(ctx, caller, w.ops)}) })
}

// globalsWanted are the settings and roles VPP should have. Before the barrier nothing is taken away.
func (r *renderer) globalsWanted() *nat44.Want {
	want := &nat44.Want{Globals: r.planned.Globals(), Interfaces: map[uint32]bool{}}
	want.Retired = r.hairpins
	for _, i := range r.set.GetInterfaces() {
		if i.GetFrontend() || i.GetBackend() {
			want.Interfaces[i.GetSwIfIndex()] = true
		}
	}
	return want
}

// outcome sums up what became of a batch.
type outcome struct {
	refused map[nat44.Key]error
	global  error // of the last operation that is not about a row
	failed  int
	unknown int  // without an answer
	unsent  int  // never left this process
	doubt   bool // VPP holds something else than we thought
}

// applied books the results of a batch.
func (r *renderer) applied(c *runtime.Context, m *applied) {
	r.work = nil
	if m.session != r.link.GetSession() || r.have == nil {
		return // VPP was away meanwhile, everything is read again
	}
	o := r.book(m)
	r.count(m, o)
	r.journal(c, m, o.refused)
	for _, k := range m.keys {
		switch err := o.refused[k]; {
		case err != nil:
			r.fail(k, err, c.Now(), r.deps.Timing.Backoff)
		case len(nat44.DiffRow(r.held(k), r.wanted(k))) == 0:
			r.clean(k)
		default:
			r.list(k)
		}
	}
	if o.unknown > 0 {
		r.have = nil // some of it may have happened: read back, never trust the cache
	}
	switch {
	case o.unknown+o.unsent > 0:
		r.delayed = c.Now().Add(r.deps.Timing.Backoff) // the link will tell of another session, which ends the wait
	case o.global != nil:
		r.refuse(c, o.global)
	default:
		r.refused, r.refusal = nil, 0
	}
	if o.doubt || o.failed > 0 {
		r.verify, r.reread = "VPP refused an operation", c.Now()
		if !o.doubt {
			r.reread = c.Now().Add(r.deps.Timing.Backoff) // not after every one of many
		}
	}
	if r.full.IsZero() {
		r.synced(c, m.began)
	} else if r.pending() == 0 {
		r.synced(c, r.full)
	}
	r.answerAll(c, m.keys)
}

// book enters what VPP has done into what it holds.
func (r *renderer) book(m *applied) (o outcome) {
	o.refused = map[nat44.Key]error{}
	for i := range m.results {
		res := &m.results[i]
		if res.Err == nil {
			r.have.Record(res.Op)
			o.doubt = o.doubt || res.Unknown
			continue
		}
		switch {
		case errors.Is(res.Err, link.ErrUnknown):
			o.unknown++
			continue
		case errors.Is(res.Err, link.ErrNotSent):
			o.unsent++
			continue
		case onRow(res.Op):
			o.refused[res.Op.Key] = res.Err
		default:
			o.global = fmt.Errorf("%s: %w", res.Op.Describe(), res.Err)
		}
		o.failed++
		o.doubt = o.doubt || res.Unknown
	}
	return o
}

func (r *renderer) count(m *applied, o outcome) {
	if r.deps.Observer != nil {
		unknown := o.unknown + o.unsent
		r.deps.Observer.Operations(r.name, len(m.results)-o.failed-unknown, o.failed, unknown)
	}
}

// synced tells how long a pass took: a full one from the beginning of the read of VPP until nothing is left to do, an incremental one from
// the beginning of its batch.
func (r *renderer) synced(c *runtime.Context, began time.Time) {
	full := !r.full.IsZero()
	r.full = time.Time{}
	if r.deps.Observer != nil {
		r.deps.Observer.Synced(r.name, c.Now().Sub(began), full)
	}
}

// journal writes down what was done and for whom.
func (r *renderer) journal(c *runtime.Context, m *applied, refused map[nat44.Key]error) {
	e := &messages.Event{Kind: "render", Object: r.name, Text: fmt.Sprintf("%d operations on %d rows", len(m.ops), len(m.keys))}
	if len(m.keys) == 1 {
		if owners := r.claims.Services(m.keys[0]); len(owners) > 0 {
			e.Object = owners[0]
			e.Cause = r.generationOf(owners[0])
		}
	}
	for i, op := range m.ops {
		if i == journalOps {
			e.Operations = append(e.Operations, fmt.Sprintf("and %d more", len(m.ops)-i))
			break
		}
		e.Operations = append(e.Operations, op.Describe())
	}
	if len(refused) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Keys(refused)), nat44.Key.Compare)
		e.Error = fmt.Sprintf("%d rows refused, first %s: %v", len(refused), first, refused[first])
	}
	record(c, e)
}

func (r *renderer) generationOf(key string) uint64 {
	if a := r.accounts[key]; a != nil {
		return a.generation
	}
	return 0
}

// onRow reports whether an operation is about one row, not about settings or roles.
func onRow(op nat44.Op) bool { return op.Verb >= nat44.AddRow && op.Verb <= nat44.DelRow }
