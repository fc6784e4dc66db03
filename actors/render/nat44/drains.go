package nat44

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// drains are the backends that VPP holds with the share 0, by row. They follow from the content of
// VPP, so a restart of the actor loses only the times.
//
// A backend in the slices keeps its entry. A backend that has left the slices keeps it until VPP
// has no session to it, or the limit is over. The sessions actor counts the sessions.
type drains struct {
	limit time.Duration // 0 = none
	rows  map[object]map[netip.AddrPort]*drain
	at    map[netip.AddrPort]*drained
	// leads are the rows in VPP that give a backend new connections until VPP has changed them, and
	// keep them then. leaving are these backends, by row.
	leads   map[netip.AddrPort]map[object]bool
	leaving map[object][]netip.AddrPort
	// sticky are the rows with affinity that VPP holds.
	sticky map[object]stick
	// generation counts changes of the list; stale says that the latest list was not sent, or
	// was lost; resting says that a long list was sent just now.
	generation     uint64
	stale, resting bool
	// counted are rows whose sessions were counted, until they are compared; ending are those
	// of them that were put into the queue.
	counted, ending []object
}

// fewEnding is how many rows from which drained backends leave are in the queue at once, so that
// other changes do not wait for many of them.
const fewEnding = 64

// listRest is the rest after a list, for each hundred draining backends and rows with affinity. So
// lists take about one percent of the time.
const listRest = 5 * time.Millisecond

// listRested is the message that another list may be sent.
type listRested struct{}

// stick is a row with affinity in VPP.
type stick struct {
	affinity time.Duration
	backends []netip.AddrPort
}

// drained is a backend that drains in some rows.
type drained struct {
	rows map[object]bool
	// generation is the generation of the list when the backend last began to drain in a row.
	// Earlier counts lack sessions that the row has begun since.
	generation uint64
}

// drain is one backend of one row.
type drain struct {
	of *drained
	// since is when it began to drain; zero until the next message has been handled.
	since time.Time
	// left is when it was first missing in the slices; zero = it is in the slices.
	left time.Time
	// counted is the generation of the list for which sessions were counted; 0 = none yet.
	// sessions counts all sessions to the backend, own the sessions through the row.
	counted       uint64
	sessions, own int
	// through are the other rows with sessions to the backend.
	through []object
	// expired says that the limit is over.
	expired bool
}

// over reports whether VPP has no session to the backend that has not ended.
func (d *drain) over() bool { return d != nil && d.known() && d.sessions == 0 }

// known reports whether all sessions were counted.
func (d *drain) known() bool { return d.counted > 0 && d.counted >= d.of.generation }

func newDrains(limit time.Duration) drains {
	return drains{
		limit: limit, rows: map[object]map[netip.AddrPort]*drain{}, at: map[netip.AddrPort]*drained{}, sticky: map[object]stick{},
		leads: map[netip.AddrPort]map[object]bool{}, leaving: map[object][]netip.AddrPort{},
	}
}

// stick notes the backends of a row with affinity in VPP.
func (d *drains) stick(k object, held *nat44.Row) {
	if held == nil || held.Affinity == 0 { // nearly all
		if _, was := d.sticky[k]; was {
			delete(d.sticky, k)
			d.stale = true
		}
		return
	}
	s := stick{affinity: time.Duration(held.Affinity) * time.Second}
	for _, l := range slices.Concat(held.Locals, held.Draining) {
		s.backends = append(s.backends, l.Endpoint())
	}
	if before, was := d.sticky[k]; !was || !slices.Equal(before.backends, s.backends) || before.affinity != s.affinity {
		d.sticky[k], d.stale = s, true
	}
}

// follow notes which backends of the row in VPP drain; nil = there is no row.
func (d *drains) follow(k object, held *nat44.Row) {
	d.stick(k, held)
	before := d.rows[k]
	if len(before) == 0 && (held == nil || len(held.Draining) == 0) { // nearly all
		return
	}
	now, next := map[netip.AddrPort]*drain{}, d.generation+1
	if held != nil {
		for _, l := range held.Draining {
			at := l.Endpoint()
			if now[at] = before[at]; now[at] == nil {
				if d.at[at] == nil {
					d.at[at] = &drained{rows: map[object]bool{}}
				}
				d.at[at].rows[k], d.at[at].generation = true, next
				now[at] = &drain{of: d.at[at]}
				d.generation, d.stale = next, true
			}
		}
	}
	for at := range before {
		if now[at] != nil {
			continue
		}
		d.generation, d.stale = next, true
		if delete(d.at[at].rows, k); len(d.at[at].rows) == 0 {
			delete(d.at, at)
		}
	}
	if d.rows[k] = now; len(now) == 0 {
		delete(d.rows, k)
	}
}

// lead notes the backends to which the row in VPP leads, and which leave it, because these are
// wanted.
func (d *drains) lead(k object, held *nat44.Row, wanted []nat44.Local) {
	for _, at := range d.leaving[k] {
		if delete(d.leads[at], k); len(d.leads[at]) == 0 {
			delete(d.leads, at)
		}
	}
	delete(d.leaving, k)
	if !waitsForEnd(k, held) || slices.Equal(held.Locals, wanted) { // nearly all
		return
	}
	for _, l := range held.Locals {
		at := l.Endpoint()
		if held.LeadsBack(l) || slices.ContainsFunc(wanted, func(o nat44.Local) bool { return o.Endpoint() == at }) {
			continue
		}
		if d.leads[at] == nil {
			d.leads[at] = map[object]bool{}
		}
		d.leads[at][k], d.leaving[k] = true, append(d.leaving[k], at)
	}
}

// led reports whether a row other than k gives the backend new connections, and will keep them when
// VPP has changed that row.
func (d *drains) led(k object, at netip.AddrPort) bool {
	rows := d.leads[at]
	return len(rows) > 1 || len(rows) == 1 && !rows[k]
}

// keys are the rows with backends that drain, ordered.
func (d *drains) keys() []object { return slices.SortedFunc(maps.Keys(d.rows), compare) }

// surroundings notes that the same backends may be told in another way.
func (d *drains) surroundings() { d.stale = d.stale || len(d.rows)+len(d.sticky) > 0 }

// concerns reports whether backends of a row drain.
func (d *drains) concerns(k object) bool { return d.rows[k] != nil }

// follow notes what follows from a row that VPP has changed; nil = there is no row.
func (a *adapter) follow(k object, held *nat44.Row) {
	a.drains.follow(k, held)
	a.lead(k, held)
}

// lead notes which backends leave a row in VPP.
func (a *adapter) lead(k object, held *nat44.Row) {
	if wanted, claimed := a.claims.Desired(k); claimed {
		a.drains.lead(k, held, wanted.Locals)
	} else {
		a.drains.lead(k, nil, nil)
	}
}

// serving are the backends that serve the clients of a row, though they may get no new connections
// of this node.
func (a *adapter) serving(k object) map[string]bool {
	all := map[string]bool{}
	first, _ := a.claims.First(k)
	for _, f := range a.views[first.Service].GetFrontends() {
		if f.GetAddress() != k.Addr.String() || f.GetPort() != uint32(k.Port) || f.GetProtocol() != messages.Protocol(k.Proto) {
			continue
		}
		for _, b := range f.GetBackends() {
			all[fmt.Sprintf("%s:%d", b.GetAddress(), b.GetPort())] = true
		}
		for _, b := range f.GetDraining() {
			all[fmt.Sprintf("%s:%d", b.GetAddress(), b.GetPort())] = b.GetServing()
		}
	}
	return all
}

// gone are the draining backends that do not serve the clients of some rows any more. While some
// services have not rendered, each of them may have the backend.
func (a *adapter) gone() map[netip.AddrPort]map[rule.Key]bool {
	if a.around.Phase < render.Passed {
		return nil
	}
	gone := map[netip.AddrPort]map[rule.Key]bool{}
	for k, row := range a.drains.rows {
		serving := a.serving(k)
		for at := range row {
			if serving[at.String()] {
				continue
			}
			if gone[at] == nil {
				gone[at] = map[rule.Key]bool{}
			}
			gone[at][k.Key] = true
		}
	}
	return gone
}

// count enters the numbers of sessions.
func (d *drains) count(m *sessions.Counted) {
	for k, row := range d.rows {
		for at, one := range row {
			live, asked := m.Live[at]
			if !asked || m.Generation < one.of.generation {
				continue
			}
			one.counted, one.sessions, one.own, one.through = m.Generation, 0, live[k.Key], nil
			for o, n := range live {
				one.sessions += n
				if o != k.Key {
					one.through = append(one.through, rowOf(o))
				}
			}
		}
	}
}

// handleSessions takes the numbers of sessions to draining backends, and notes the time.
func (a *adapter) handleSessions(c *runtime.Context, m *sessions.Counted) {
	// the sessions actor has another list, or none: the latest was lost, or it comes from an
	// earlier incarnation
	if m.Generation != a.drains.generation {
		a.drains.stale = true
	}
	if m.Generation == 0 || m.Generation > a.drains.generation {
		return
	}
	a.drains.count(m)
	a.drains.counted = a.drains.keys()
	for _, k := range a.drains.counted {
		r, _ := a.claims.Desired(k)
		for at, one := range a.drains.rows[k] {
			inSlices := slices.ContainsFunc(r.Draining, func(l nat44.Local) bool { return l.Endpoint() == at })
			switch {
			case inSlices:
				one.left, one.expired = time.Time{}, false
			case one.left.IsZero():
				one.left = c.Now()
			case a.drains.limit > 0 && c.Now().Sub(one.left) >= a.drains.limit:
				one.expired = true
			}
		}
	}
}

// endDrains puts rows into the queue that drained backends may leave.
func (a *adapter) endDrains() {
	d := &a.drains
	d.ending = slices.DeleteFunc(d.ending, func(k object) bool {
		_, err := a.progress.Refusal(k)
		return err != nil || !a.progress.Dirty(k)
	})
	for a.have != nil && len(d.counted) > 0 && len(d.ending) < fewEnding {
		if k := d.counted[0]; a.Next(k).Cost > 0 {
			a.claims.CompareAgain(k)
			d.ending = append(d.ending, k)
		}
		d.counted = d.counted[1:]
	}
}

// blind are the addresses of these endpoints that are behind interfaces with the outside role
// alone, as far as the agent knows: the pod network of the node tells local endpoints from others.
func (a *adapter) blind(endpoints []netip.AddrPort) map[netip.Addr]bool {
	known := len(a.podCIDRs) > 0
	local, remote := false, false // whether such an interface leads to local or to other endpoints
	for _, i := range a.set.GetInterfaces() {
		if needed(i) && a.outsideAlone(i) {
			local = local || i.GetBackend() || !known
			remote = remote || !i.GetLocal() || !known
		}
	}
	blind := map[netip.Addr]bool{}
	for _, at := range endpoints {
		here := slices.ContainsFunc(a.podCIDRs, func(p netip.Prefix) bool { return p.Contains(at.Addr()) })
		if here && local || !here && remote {
			blind[at.Addr()] = true
		}
	}
	return blind
}

// sendDraining sends the list of draining backends and of rows with affinity, if it has changed.
func (a *adapter) sendDraining(c *runtime.Context) {
	if !a.drains.stale || a.drains.resting {
		return
	}
	a.drains.stale = false
	if rest := time.Duration((len(a.drains.at)+len(a.drains.sticky))/100) * listRest; rest > 0 {
		a.drains.resting = true
		c.After(rest, &listRested{})
	}
	for _, row := range a.drains.rows {
		for _, one := range row {
			if one.since.IsZero() {
				one.since = c.Now()
			}
		}
	}
	m := &sessions.Wish{Generation: a.drains.generation, Gone: a.gone(), Sticky: map[rule.Key]time.Duration{}}
	m.Draining = slices.SortedFunc(maps.Keys(a.drains.at), netip.AddrPort.Compare)
	for k, s := range a.drains.sticky {
		m.Sticky[k.Key], m.Backends = s.affinity, append(m.Backends, s.backends...)
	}
	m.Blind = a.blind(slices.Concat(m.Draining, m.Backends))
	c.Send(c.PID(address.Sessions), m)
}

// drainingOf are the draining backends of a row, for operators.
func (a *adapter) drainingOf(k object, held *nat44.Row) (list []*messages.DrainingBackend) {
	r, claimed := a.claims.Desired(k)
	for _, l := range held.Draining {
		b := &messages.DrainingBackend{Address: l.String()}
		if !slices.ContainsFunc(r.Draining, func(o nat44.Local) bool { return o.Endpoint() == l.Endpoint() }) {
			b.Kept = a.kept(k, claimed, held, l.Endpoint())
		}
		if one := a.drains.rows[k][l.Endpoint()]; one != nil {
			if !one.since.IsZero() {
				b.Since = one.since.UnixNano()
			}
			if one.known() {
				b.Connections = proto.Uint32(uint32(one.own))
			}
		}
		list = append(list, b)
	}
	return list
}
