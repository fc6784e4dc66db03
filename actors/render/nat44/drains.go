package nat44

import (
	"encoding/binary"
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
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// drains are the backends that VPP holds with the share 0, by row. They follow from what VPP holds,
// so that nothing is lost with the actor, except since when they drain.
//
// A backend in the slices keeps its entry as long as it is there. One that has left them keeps it
// until VPP has no session to it any more, or the limit is over. The actor sessions counts the
// sessions.
type drains struct {
	limit time.Duration // 0 = none
	rows  map[object]map[netip.AddrPort]*drain
	at    map[netip.AddrPort]*drained
	// generation counts changes of the list; stale says that the latest one was not sent, or is
	// lost.
	generation uint64
	stale      bool
}

// drained is a backend that drains in some rows.
type drained struct {
	rows map[object]bool
	// lead is the last row that gives it new connections until VPP has changed it: rows are changed
	// in their order.
	lead object
	// generation is that of the list when the backend last began to drain in a row. Earlier counts
	// lack sessions that the row has begun since.
	generation uint64
}

// drain is one backend of one row.
type drain struct {
	of *drained
	// since when it drains; zero until the next message has been handled.
	since time.Time
	// left is when it was first seen outside of the slices; zero = it is in them.
	left time.Time
	// counted is the generation of the list for which VPP was asked, 0 = not yet: for all sessions
	// to the backend, and those through the row.
	counted       uint64
	sessions, own uint32
	// through are the other rows with sessions to it.
	through []object
	// expired says that the limit is over.
	expired bool
}

// over reports whether VPP has no session to the backend.
func (d *drain) over() bool { return d != nil && d.known() && d.sessions == 0 }

// known reports whether the sessions were counted, all of them.
func (d *drain) known() bool { return d.counted > 0 && d.counted >= d.of.generation }

func newDrains(limit time.Duration) drains {
	return drains{limit: limit, rows: map[object]map[netip.AddrPort]*drain{}, at: map[netip.AddrPort]*drained{}}
}

// follow notes which backends of a row drain, as VPP holds it; nil = there is no row.
func (d *drains) follow(k object, held *nat44.Row) {
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

// lead notes the backends to which a row leads, as VPP holds it, while something else is wanted.
func (d *drains) lead(k object, held *nat44.Row) {
	if held == nil || len(d.at) == 0 { // nearly all
		return
	}
	for _, l := range held.Locals {
		if one := d.at[l.Endpoint()]; one != nil {
			one.lead = k
		}
	}
}

// keys are the rows with backends that drain, ordered.
func (d *drains) keys() []object { return slices.SortedFunc(maps.Keys(d.rows), compare) }

// endpoints lists the backends that drain, ordered.
func (d *drains) endpoints() []string {
	all := slices.SortedFunc(maps.Keys(d.at), netip.AddrPort.Compare)
	texts := make([]string, len(all))
	for i, at := range all {
		texts[i] = at.String()
	}
	return texts
}

// count takes what VPP has said about sessions.
func (d *drains) count(m *messages.DrainingSessions) {
	found := make(map[netip.AddrPort]map[string]uint32, len(m.GetCounts()))
	for _, c := range m.GetCounts() {
		if at, err := netip.ParseAddrPort(c.GetEndpoint()); err == nil {
			found[at] = c.GetSessions()
		}
	}
	for k, row := range d.rows {
		for at, one := range row {
			sessions, asked := found[at]
			if !asked || m.GetGeneration() < one.of.generation {
				continue
			}
			one.counted, one.sessions, one.own, one.through = m.GetGeneration(), 0, sessions[k.Key.String()], nil
			for text, n := range sessions {
				one.sessions += n
				if o, err := rule.ParseKey(text); err == nil && o != k.Key {
					one.through = append(one.through, rowOf(o))
				}
			}
		}
	}
}

// use counts the backends of a plan, for how many lists of services name each of them.
func (a *adapter) use(plan *nat44.ServicePlan, by int32) {
	if plan == nil {
		return
	}
	seen := map[*nat44.Local]bool{}
	count := func(list []nat44.Local) {
		if len(list) == 0 || seen[&list[0]] {
			return
		}
		seen[&list[0]] = true
		for _, l := range list {
			at := ipv4(l.Endpoint())
			if a.users[at] += by; a.users[at] == 0 {
				delete(a.users, at)
			}
		}
	}
	for _, r := range plan.Claims() {
		count(r.Locals)
		count(r.Draining)
	}
}

// ipv4 is an endpoint in 6 bytes: a map of all endpoints of a node by netip.AddrPort takes four
// times the memory.
func ipv4(at netip.AddrPort) uint64 {
	a := at.Addr().As16()
	return uint64(binary.BigEndian.Uint32(a[12:]))<<16 | uint64(at.Port())
}

// keeps reports whether a backend that a row in VPP has, and its service does not name any more,
// keeps its entry with the share 0. VPP ends the sessions to a backend through every row with its
// entry, so that it stays as well where another service has sessions to it. UDP has no end of a
// connection, and clients with affinity open the next ones to the same backend: there nothing else
// keeps an entry. To take one from a row with affinity replaces the row, so that it waits for the
// limit. As long as some services have not rendered, each of them may name the backend. While VPP's
// memory is low no further one stays, because rows would double when all their backends change.
//
// An entry without sessions through its row is not deleted, up to the limit, while a service has
// the backend: a connection of that service that begins meanwhile would end. A static mapping counts
// as a service does, for the rows of services only.
func (a *adapter) keeps(k object, claimed bool, held *nat44.Row, at netip.AddrPort) bool {
	one := a.drains.rows[k][at]
	inUse := a.users[ipv4(at)] > 0 || a.external.names[ipv4(at)] && !nat44.External(held.Tag)
	unused := one != nil && one.known() && one.own == 0 && inUse
	crowded := a.progress.Memory() > heap.Enough || len(a.drains.rows) > maxUnused
	switch {
	case one != nil && one.expired && !unused:
		return false
	case a.led(k, at):
		return true
	case unused && !one.expired && !crowded:
		return true
	case held.Affinity == 0 && one.over():
		return false
	case a.phase < render.Passed:
		return true
	case one == nil && a.progress.Memory() > heap.Enough:
		return false
	case claimed && waitsForEnd(k, held), inUse:
		return true
	}
	if one := a.drains.at[at]; one != nil {
		for o := range one.rows {
			if a.waits(o) {
				return true
			}
		}
	}
	// The backend may begin to drain in another row at this moment. Its sessions there would end
	// with this entry.
	return one != nil && (!claimed && !one.known() || slices.ContainsFunc(one.through, a.waits))
}

// maxUnused is the number of rows with backends that drain up to which those stay through which no
// connection is left.
const maxUnused = 1000

// led reports whether another row gives a backend new connections until VPP has changed it, and
// goes on to have them.
func (a *adapter) led(k object, at netip.AddrPort) bool {
	one := a.drains.at[at]
	if one == nil || one.lead == k || !a.waits(one.lead) {
		return false
	}
	is := func(l nat44.Local) bool { return l.Endpoint() == at }
	wanted, _ := a.claims.Desired(one.lead)
	return slices.ContainsFunc(a.held(one.lead).Locals, is) && !slices.ContainsFunc(wanted.Locals, is)
}

// waits reports whether a backend that leaves a row keeps its connections there.
func (a *adapter) waits(o object) bool { return a.claims.Claimed(o) && waitsForEnd(o, a.held(o)) }

// waitsForEnd reports whether a backend leaves a row when its connections have ended. In other rows
// it stays for the sake of these only: two of them would keep it for each other.
func waitsForEnd(k object, held *nat44.Row) bool {
	return held != nil && k.Proto == rule.TCP && held.Affinity == 0
}

// wanted is the row that VPP should hold under a key; nil = none. Beyond what the services want, it
// has backends that VPP holds and that keep their connections.
func (a *adapter) wanted(k object) *nat44.Row {
	r, claimed := a.claims.Desired(k)
	held := a.held(k)
	switch {
	case held == nil || claimed && !r.SameService(held):
		if len(r.Locals) == 0 {
			return nil
		}
		r = a.fitting(r, held, 0)
		return &r
	case claimed && len(held.Draining) == 0 && slices.Equal(r.Locals, held.Locals): // nearly all
		return &r
	case len(r.Locals) == 0 && a.phase < render.Passed:
		// to take a row's last backend away waits as its deletion does
		return nil
	case !claimed && (a.ranges.Closed(k.Key) || a.spares(k)):
		return nil
	case !claimed:
		r = nat44.Row{Key: k.Key, Tag: held.Tag}
	}
	var left, kept []nat44.Local
	for _, l := range slices.Concat(held.Locals, held.Draining) {
		is := func(o nat44.Local) bool { return o.Endpoint() == l.Endpoint() }
		if !held.LeadsBack(l) && !slices.ContainsFunc(r.Locals, is) && !slices.ContainsFunc(r.Draining, is) {
			l.Weight = 0
			if left = append(left, l); a.keeps(k, claimed, held, l.Endpoint()) {
				kept = append(kept, l)
			}
		}
	}
	if len(r.Locals)+len(r.Draining)+len(kept) > nat44.MaxBackends || len(r.Draining)+len(kept) > nat44.MaxDraining {
		kept = slices.DeleteFunc(kept, func(l nat44.Local) bool { return a.drains.rows[k][l.Endpoint()].over() })
	}
	if !claimed && held.Affinity > 0 && len(kept) > 0 { // no entry of such a row goes by itself
		kept = left
	}
	r = a.fitting(r, held, len(kept)).AlsoDraining(kept)
	if nat44.Target(held, &r) == nil {
		return nil
	}
	return &r
}

// fitting returns the row without the backends for which VPP has no memory, beside those that are
// kept.
func (a *adapter) fitting(r nat44.Row, held *nat44.Row, kept int) nat44.Row {
	if held == nil || a.progress.Memory() < heap.Critical {
		return r
	}
	return r.Within(max(1, len(held.Locals)+len(held.Draining)-kept), held)
}

// lacks returns an error where VPP has no memory for all backends of a row.
func (a *adapter) lacks(r *nat44.Row) error {
	if a.progress.Memory() < heap.Critical {
		return nil
	}
	want := a.wanted(rowOf(r.Key))
	if want == nil || len(want.Locals) >= len(r.Locals) {
		return nil
	}
	return fmt.Errorf("%w: it has %d of %d endpoints", heap.ErrLow, len(want.Locals), len(r.Locals))
}

// handleSessions takes what VPP has said about the sessions of backends that drain, and the time.
func (a *adapter) handleSessions(c *runtime.Context, m *messages.DrainingSessions) (changed []object) {
	// the sessions actor has another list, or none: the latest was lost, or an earlier incarnation
	// has sent it
	if m.GetGeneration() != a.drains.generation {
		a.drains.stale = true
	}
	if m.GetGeneration() == 0 || m.GetGeneration() > a.drains.generation {
		return nil
	}
	a.drains.count(m)
	for _, k := range a.drains.keys() {
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
		if a.have != nil && a.rowCost(k) > 0 {
			changed = append(changed, k)
		}
	}
	return changed
}

// sendDraining sends the list of the backends that drain, if it is another one.
func (a *adapter) sendDraining(c *runtime.Context) {
	if !a.drains.stale {
		return
	}
	a.drains.stale = false
	for _, row := range a.drains.rows {
		for _, one := range row {
			if one.since.IsZero() {
				one.since = c.Now()
			}
		}
	}
	c.Send(c.PID(address.Sessions), &messages.Draining{Generation: a.drains.generation, Endpoints: a.drains.endpoints()})
}

// Draining is the number of endpoints that drain, for the state of the renderer.
func (a *adapter) Draining() int { return len(a.drains.at) }

// drainingOf are the backends of a row that drain, for operators.
func (a *adapter) drainingOf(k object, held *nat44.Row) (list []*messages.DrainingBackend) {
	for _, l := range held.Draining {
		b := &messages.DrainingBackend{Address: l.String()}
		if one := a.drains.rows[k][l.Endpoint()]; one != nil {
			if !one.since.IsZero() {
				b.Since = one.since.UnixNano()
			}
			if one.known() {
				b.Connections = proto.Uint32(one.own)
			}
		}
		list = append(list, b)
	}
	return list
}
