package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// startBatch sends the operations for the rows on the list, settings and roles first.
func (r *renderer) startBatch(c *runtime.Context) {
	w := &work{session: r.link.GetSession(), began: c.Now(), rows: map[nat44.Key]*nat44.Row{}}
	if r.globals {
		w.ops = nat44.DiffGlobals(r.have, r.globalsWanted())
	}
	quiet := map[nat44.Key]bool{}
	for _, k := range r.batch(c.Now(), batchRows) {
		want := r.wanted(k)
		if want == nil && !r.passed() {
			continue // barrier: somebody who has not spoken may want it
		}
		ops := nat44.DiffRow(r.held(k), want)
		if len(ops) == 0 {
			r.clean(k)
			quiet[k] = true
			continue
		}
		w.keys, w.rows[k], w.ops = append(w.keys, k), want, append(w.ops, ops...)
	}
	r.globals = r.globals && len(w.ops) > 0
	r.answerAll(c, quiet)
	if len(w.ops) == 0 {
		return
	}
	r.work = w
	post, caller := c.Post(), r.deps.Link
	c.Go("apply", func(ctx context.Context) { post(&applied{w, nat44.Apply(ctx, caller, w.ops)}) })
}

// globalsWanted are the settings and roles VPP should have. Before the barrier nothing is taken away.
func (r *renderer) globalsWanted() *nat44.Want {
	want := &nat44.Want{Globals: r.planned.Globals(), Interfaces: map[uint32]bool{}}
	for _, i := range r.set.GetInterfaces() {
		if i.GetFrontend() || i.GetBackend() {
			want.Interfaces[i.GetSwIfIndex()] = true
		}
	}
	return want
}

// applied books the results of a batch.
func (r *renderer) applied(c *runtime.Context, m *applied) {
	r.work = nil
	if m.session != r.link.GetSession() || r.have == nil {
		return // VPP was away meanwhile, everything is read again
	}
	refusedKeys := map[nat44.Key]error{}
	var global error
	failed, unknown := 0, 0
	for i := range m.results {
		res := &m.results[i]
		switch {
		case res.Err == nil && !res.Unknown:
			r.have.Record(res.Op)
		case res.Err == nil || errors.Is(res.Err, link.ErrUnknown) || errors.Is(res.Err, link.ErrNotSent):
			unknown++
		case !onRow(res.Op):
			failed++
			global = fmt.Errorf("%s: %w", res.Op.Describe(), res.Err)
		default:
			failed++
			refusedKeys[res.Op.Key] = res.Err
		}
	}
	r.count(c, m, failed, unknown)
	r.journal(c, m, refusedKeys)
	touched := map[nat44.Key]bool{}
	for _, k := range m.keys {
		touched[k] = true
		switch err := refusedKeys[k]; {
		case err != nil:
			r.fail(k, err, c.Now(), r.deps.Timing.Backoff)
		case sameRow(m.rows[k], r.wanted(k)):
			r.clean(k)
		}
	}
	switch {
	case unknown > 0:
		r.have = nil // some of it may have happened: read back, never trust the cache
	case len(refusedKeys) > 0:
		r.verify = "VPP refused an operation" // it does not hold what we thought
		r.delayed = c.Now().Add(r.deps.Timing.Backoff)
	case global != nil:
		r.verify = "VPP refused an operation"
		r.refuse(c, global)
	default:
		r.refused, r.refusal = nil, 0
	}
	r.answerAll(c, touched)
}

// answerAll tells every service with a claim on one of the rows where it stands.
func (r *renderer) answerAll(c *runtime.Context, keys map[nat44.Key]bool) {
	services := map[string]bool{}
	for k := range keys {
		r.affected(k, services)
	}
	for name, a := range r.accounts {
		if a.view == nil {
			services[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		r.answer(c, name)
	}
}

func (r *renderer) count(c *runtime.Context, m *applied, failed, unknown int) {
	if o := r.deps.Observer; o != nil {
		o.Operations(r.name, len(m.results)-failed-unknown, failed, unknown)
		o.Synced(r.name, c.Now().Sub(m.began), len(m.keys) == batchRows)
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
	for _, k := range slices.SortedFunc(maps.Keys(refused), nat44.Key.Compare) {
		e.Error = fmt.Sprintf("%d rows refused, first %s: %v", len(refused), k, refused[k])
		break
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

// sameRow compares what a batch brought with what is wanted now.
func sameRow(a, b *nat44.Row) bool {
	return a == b || a != nil && b != nil && len(nat44.DiffRow(a, b)) == 0
}

// sameAck compares answers without regard to the generation they answer.
func sameAck(a, b *messages.RenderAck) bool { return proto.Equal(a, b) }
