package actors

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

func (r *renderer) startRead(c *runtime.Context) {
	w := &work{session: r.link.GetSession(), began: c.Now(), reason: r.reading(r.have != nil)}
	r.work = w
	post, caller := c.Post(), r.deps.Link
	guard := r.have == nil || r.guard.needed() // others may change lists, and who has none of ours needs none
	c.Go("read", func(ctx context.Context) {
		m, ctx := &readDone{work: w}, purpose(ctx, w.reason)
		if m.state, m.err = nat44.Read(ctx, caller); m.err == nil && guard {
			m.lists = readLists(ctx, caller)
			m.err = m.lists.err
		}
		post(m)
	})
}

// read adopts what VPP holds and puts every row that may differ on the list.
func (r *renderer) read(c *runtime.Context, m *readDone) {
	r.work, r.outside.stale = nil, true
	r.rest(c, m.began)
	if m.session != r.link.GetSession() {
		return
	}
	if m.err != nil {
		r.readFailed(c, r.have != nil, m.reason, m.err)
		return
	}
	r.readAccepted()
	damaged := m.lists != nil && r.takeLists(c, m.lists)
	before := r.have
	m.state.Inherit(before)
	r.have, r.globals, r.swept = m.state, true, false
	news := r.claims.SetForeign(m.state.Foreign)
	for _, k := range news {
		r.touch(k)
	}
	if before == nil || !maps.Equal(before.Foreign, r.have.Foreign) {
		r.guard.reconsider() // rows of others come and go also where nobody has a row
	}
	differences, settled := r.compare()
	news = append(news, settled...)
	if before != nil {
		damage := r.drift(before)
		differences, news = len(damage)+r.strayed(before), append(news, damage...)
		r.damaged = r.damaged || differences > 0
	} else {
		r.full = m.began
	}
	if damaged {
		differences++
	}
	if differences > 0 || m.reason != reasonAudit {
		record(c, &messages.Event{
			Kind: "resync", Object: r.name, Method: r.method(),
			Text: fmt.Sprintf("VPP read (%s): %d rows of ours, %d of others, %d differ", m.reason, len(r.have.Rows), len(r.have.Foreign), differences),
		})
	}
	if before != nil || damaged {
		r.drifted(differences)
	}
	c.Send(c.PID(PathIntrospect), &messages.Verified{Renderer: r.name, Epoch: r.epoch, Differences: uint32(differences)})
	if before == nil || r.retell {
		r.retell = false
		r.tellAll(c)
	} else {
		r.answerAll(c, news)
	}
}

// compare lists every row that is not as wanted. It returns their number, and the rows that were refused and are as wanted nevertheless.
// Rows that nobody wants wait for the barrier, unless their service has said that it is gone.
func (r *renderer) compare() (differences int, settled []nat44.Key) {
	keys := make([]nat44.Key, 0, len(r.have.Rows))
	for k := range r.have.Rows {
		if row, ok := r.claims.Row(k); !ok && r.passed() && !r.spares(k) || ok && len(nat44.DiffRow(r.held(k), &row)) > 0 {
			keys = append(keys, k)
		}
	}
	for k := range r.claims.Rows() {
		if _, held := r.have.Rows[k]; !held {
			keys = append(keys, k)
		}
	}
	for name := range r.leaving {
		for k := range r.leaving[name] {
			if _, held := r.have.Rows[k]; held && r.wanted(k) == nil {
				keys = append(keys, k)
			}
		}
	}
	settled = r.relist(keys)
	return len(r.dirty), settled
}

// drift lists the rows that VPP did not hold as we knew: somebody else has been there. What was refused for that reason is worth another try
// at once.
func (r *renderer) drift(before *nat44.State) []nat44.Key {
	var changed []nat44.Key
	for k, old := range before.Rows {
		if now, held := r.have.Rows[k]; !held || !now.Equal(old) {
			changed = append(changed, k)
		}
	}
	for k := range r.have.Rows {
		if _, held := before.Rows[k]; !held {
			changed = append(changed, k)
		}
	}
	slices.SortFunc(changed, nat44.Key.Compare)
	for _, k := range changed {
		if r.failed[k] != nil {
			r.touch(k)
		}
	}
	return changed
}

// strayed counts the settings and interface roles that we have to set again although VPP had them: somebody else has been there. Addresses that
// NAT44 has left behind are its own doing.
func (r *renderer) strayed(before *nat44.State) (n int) {
	want := r.globalsWanted()
	open := map[nat44.Op]nat44.Roles{} // roles by what is done with them; VPP may have taken some and refused the others
	for _, op := range nat44.DiffGlobals(before, want) {
		roles := op.Roles
		op.Roles = 0
		open[op] |= roles
	}
	for _, op := range nat44.DiffGlobals(r.have, want) {
		roles := op.Roles
		op.Roles = 0
		if expected, still := open[op]; op.Verb != nat44.Withdraw && (!still || roles&^expected != 0) {
			n++
		}
	}
	return n
}
