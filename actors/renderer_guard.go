package actors

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// accessLists are the lists that were read; nil = VPP has none, because the plugin is not loaded.
type accessLists struct {
	state *acl.State
	err   error
}

// guardRead and guardApplied are the results of work.
type (
	guardRead struct {
		*work
		lists *accessLists
	}
	guardApplied struct {
		*work
		results []acl.OpResult
	}
)

// readLists reads the access lists; that VPP cannot have any is no error.
func readLists(ctx context.Context, caller link.Caller) *accessLists {
	state, err := acl.Read(ctx, caller)
	if errors.Is(err, link.ErrUnsupported) {
		return &accessLists{}
	}
	return &accessLists{state, err}
}

// protect brings what is not dropped and should be into VPP, before the rows that rely on it. It reports whether the rows have to wait
// for work that has begun, as roles do: no interface gets one before it drops what it should. What VPP refuses holds up only the rows that it
// is for.
func (r *renderer) protect(c *runtime.Context) bool {
	g := r.guard
	if r.passed() && !r.swept {
		g.reconsider() // who has not spoken before owns nothing
	}
	r.answerEach(c, r.arrange(r.owner))
	switch {
	case !g.needed():
		if g.err != nil { // nobody wants any more what was refused
			g.forgive()
			r.lookAgain(c)
		}
		return false
	case g.rests(c.Now()):
		return false
	case g.have == nil:
		r.readGuard(c)
		return true
	case g.dirty:
		if ops := acl.Diff(g.have, &g.want, false); len(ops) > 0 {
			r.applyGuard(c, g.due(ops))
			return true
		}
		g.dirty = false
		r.lookAgain(c)
	}
	return false
}

// owner is the service whose rules count at a frontend. As long as VPP holds the row of another one there that may still speak and own it,
// nobody's do: its clients would be dropped by rules that are not its own.
func (r *renderer) owner(k nat44.Key) (service string, claimed bool) {
	if r.have != nil && !r.passed() {
		if held, want := r.held(k), r.wanted(k); held != nil && (want == nil || !want.SameService(held)) {
			return "", true
		}
	}
	return r.claims.Owner(k)
}

// unprotect takes what is dropped and should not be out of VPP, when the rows that relied on it are gone.
func (r *renderer) unprotect(c *runtime.Context) {
	g := r.guard
	if r.work != nil || !r.passed() || r.pending() > 0 || !g.needed() || g.have == nil || g.dirty || !g.loose || g.rests(c.Now()) {
		return
	}
	want, all := g.remaining(func(k nat44.Key) bool {
		_, dirty := r.dirty[k]
		return dirty
	})
	if ops := acl.Diff(g.have, want, true); len(ops) > 0 {
		r.applyGuard(c, g.due(ops))
		return
	}
	g.loose = !all
	g.forgive() // whatever VPP has refused, nothing is left of it
	r.lookAgain(c)
}

func (r *renderer) readGuard(c *runtime.Context) {
	w := &work{session: r.link.GetSession(), began: c.Now()}
	r.work = w
	post, caller := c.Post(), r.deps.Link
	c.Go("read-guard", func(ctx context.Context) { post(&guardRead{w, readLists(ctx, caller)}) })
}

func (r *renderer) applyGuard(c *runtime.Context, ops []acl.Op) {
	w := &work{session: r.link.GetSession(), began: c.Now()}
	r.work = w
	post, caller := c.Post(), r.deps.Link
	c.Go("apply-guard", func(ctx context.Context) { post(&guardApplied{w, acl.Apply(ctx, caller, ops)}) })
}

// guardRead adopts the access lists that VPP holds.
func (r *renderer) guardRead(c *runtime.Context, m *guardRead) {
	r.work = nil
	switch {
	case m.session != r.link.GetSession():
	case lost(m.lists.err):
		r.delayed = c.Now().Add(r.deps.Timing.Backoff) // the link will tell
	case m.lists.err != nil:
		r.guard.fail(m.lists.err, c.Now(), r.deps.Timing.Backoff)
		r.probeLater(c, true)
		r.lookAgain(c)
	default:
		r.takeLists(c, m.lists)
	}
}

// takeLists adopts what was read, and reports whether somebody else has changed what we had put there.
func (r *renderer) takeLists(c *runtime.Context, lists *accessLists) (damaged bool) {
	g := r.guard
	known := g.have != nil && !g.dirty
	g.have = lists.state
	g.changed()
	names := r.unguarded(lists.state == nil, r.owner)
	if known && lists.state != nil {
		damaged = len(acl.Diff(g.have, &g.want, false)) > 0
		r.damaged = r.damaged || damaged
	}
	r.answerEach(c, names)
	r.lookAgain(c)
	return damaged
}

// guardApplied books what VPP has done.
func (r *renderer) guardApplied(c *runtime.Context, m *guardApplied) {
	r.work = nil
	g := r.guard
	if m.session != r.link.GetSession() || g.have == nil {
		return // VPP was away meanwhile, everything is read again
	}
	o, overtaken := g.book(m.results)
	if !g.vain(o.global) {
		r.journalGuard(c, m)
	}
	if r.deps.Observer != nil {
		r.deps.Observer.Operations(r.object, o.done, o.failed, o.unknown+o.unsent)
	}
	switch {
	case o.global != nil && overtaken && g.tries == 0:
		g.tries++ // an interface went, or somebody else changed its list: look again at once, but not for ever
	case o.global != nil:
		if !g.vain(o.global) {
			c.Logger().Warn("VPP refused access lists", "err", o.global)
		}
		g.fail(o.global, c.Now(), r.deps.Timing.Backoff)
		r.probeLater(c, true)
	case o.unknown+o.unsent > 0:
		r.delayed = c.Now().Add(r.deps.Timing.Backoff) // the link will tell of another session, which ends the wait
	default:
		g.forgive()
	}
	r.lookAgain(c)
}

// lookAgain finds out where VPP stands, tells the services, and lets the rows go on that were held up and need not wait any more.
func (r *renderer) lookAgain(c *runtime.Context) {
	g := r.guard
	names := g.look()
	if g.err != nil {
		names = sortedKeys(g.plans) // the error is part of what they are told
	}
	for _, k := range slices.SortedFunc(maps.Keys(g.waiting), nat44.Key.Compare) {
		if g.holds(k) {
			continue
		}
		delete(g.waiting, k)
		if _, dirty := r.dirty[k]; dirty && r.failed[k] == nil {
			r.list(k)
		}
	}
	r.answerEach(c, names)
}

// answerEach tells services where they stand, if that is news.
func (r *renderer) answerEach(c *runtime.Context, names []string) {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		r.answer(c, name)
	}
}

// journalGuard writes down what was done.
func (r *renderer) journalGuard(c *runtime.Context, m *guardApplied) {
	d := deeds[nat44.Key]{object: r.name, method: r.method(), noun: "access lists", list: make([]deed[nat44.Key], len(m.results))}
	for i := range m.results {
		d.list[i] = deed[nat44.Key]{text: m.results[i].Op.Describe(), err: m.results[i].Err}
	}
	d.record(c)
}
