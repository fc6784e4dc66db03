package nat44

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// use counts, for each backend, how many lists of services name it.
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

// kept says why a backend keeps its entry in a row of VPP, with the share 0, although the row is
// wanted without it; "" = the entry goes. The deletion of the entry makes VPP end the sessions to
// the backend through every row that has it. The first line that applies decides.
func (a *adapter) kept(k object, claimed bool, held *nat44.Row, at netip.AddrPort) string {
	one := a.drains.rows[k][at]
	// a static mapping counts as a service, for the rows of services only
	inUse := a.users[ipv4(at)] > 0 || a.external.names[ipv4(at)] && !nat44.External(held.Tag)
	unused := one != nil && one.known() && one.own == 0 && inUse
	scarce := a.progress.Memory() > heap.Enough
	switch {
	case one != nil && one.expired && !unused:
		return ""
	case a.drains.led(k, at):
		return "another row sends connections there until VPP has changed it"
	case unused && !one.expired && !scarce && len(a.drains.rows) <= maxUnused:
		return "a connection of a service that has the endpoint may begin"
	case held.Affinity == 0 && one.over(): // with affinity, only the row as a whole can go
		return ""
	case a.around.Phase < render.Passed:
		return "a service that has not rendered may have the endpoint"
	case one == nil && scarce: // a row would double when all its backends change
		return ""
	case claimed && waitsForEnd(k, held), inUse:
		return one.connections()
	}
	// UDP has no end of a connection, and clients with affinity open new ones: such rows keep a
	// backend for connections through other rows only
	if shared := a.drains.at[at]; shared != nil {
		for o := range shared.rows {
			if a.waits(o) {
				return one.connections()
			}
		}
	}
	if one != nil && !claimed && !one.known() {
		return one.connections() // its sessions through another row would end with this entry
	}
	if one != nil && slices.ContainsFunc(one.through, a.waits) {
		return one.connections()
	}
	return ""
}

// connections says for which connections a backend keeps its entry.
func (d *drain) connections() string {
	switch {
	case d == nil || !d.known():
		return "its connections are not counted yet"
	case d.sessions > d.own:
		return fmt.Sprintf("%d connections of another service", d.sessions-d.own)
	default:
		return fmt.Sprintf("%d connections", d.own)
	}
}

// maxUnused is the highest number of rows with draining backends. Above it, draining backends
// without a connection through their row are deleted.
const maxUnused = 1000

// waits reports whether a backend that leaves the row keeps its connections.
func (a *adapter) waits(o object) bool { return a.claims.Claimed(o) && waitsForEnd(o, a.held(o)) }

// waitsForEnd reports whether a backend leaves the row when its connections have ended. Other rows
// keep a backend only for such a row: two rows of another kind would keep it for each other.
func waitsForEnd(k object, held *nat44.Row) bool {
	return held != nil && k.Proto == rule.TCP && held.Affinity == 0
}

// wanted is the row that VPP should hold under a key; nil = none. It is the row that the services
// want, with the backends that keep their connections.
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
	case len(r.Locals) == 0 && a.around.Phase < render.Passed:
		// the removal of the last backend waits as the deletion of the row does
		return nil
	case !claimed && (a.ranges.closed[k.Key] || a.spares(k)):
		return nil
	case !claimed:
		r = nat44.Row{Key: k.Key, Tag: held.Tag}
	}
	var left, kept []nat44.Local
	for _, l := range slices.Concat(held.Locals, held.Draining) {
		is := func(o nat44.Local) bool { return o.Endpoint() == l.Endpoint() }
		if !held.LeadsBack(l) && !slices.ContainsFunc(r.Locals, is) && !slices.ContainsFunc(r.Draining, is) {
			l.Weight = 0
			if left = append(left, l); a.kept(k, claimed, held, l.Endpoint()) != "" {
				kept = append(kept, l)
			}
		}
	}
	if len(r.Locals)+len(r.Draining)+len(kept) > nat44.MaxBackends || len(r.Draining)+len(kept) > nat44.MaxDraining {
		kept = slices.DeleteFunc(kept, func(l nat44.Local) bool { return a.drains.rows[k][l.Endpoint()].over() })
	}
	// a row with affinity is only deleted as a whole
	if !claimed && held.Affinity > 0 && len(kept) > 0 {
		kept = left
	}
	r = a.fitting(r, held, len(kept)).AlsoDraining(kept)
	if len(r.Locals) == 0 && nat44.Target(held, &r) == nil {
		return nil
	}
	return &r
}

// fitting returns the row without the backends for which VPP has no memory. kept counts the
// draining backends that stay.
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

func (a *adapter) Acknowledge(ack *messages.RenderAck, service string, known bool) {
	if plan := a.plans[service]; plan != nil {
		ack.Approximations = plan.Approximations
		for i := range plan.Rows {
			ack.Rows = append(ack.Rows, a.rowState(service, &plan.Rows[i], known))
			err := a.lacks(&plan.Rows[i])
			if a.ranges.closed[plan.Rows[i].Key] {
				err = errClosed
			}
			if err != nil {
				ack.State, ack.Error = messages.RenderState_RENDER_FAILED, fmt.Sprintf("%s: %v", plan.Rows[i].Key, err)
			}
		}
		render.Unrendered(ack, "not rendered", plan.Unrendered)
		if a.another != "" && len(plan.Rows) > 0 {
			ack.State, ack.Error = messages.RenderState_RENDER_FAILED, "not served: "+a.another
		}
	}
	_, err := a.progress.Refusal(missingLists)
	if err == nil {
		_, err = a.progress.Refusal(extraLists)
	}
	if err != nil {
		err = fmt.Errorf("access lists: %w", err)
	}
	a.ranges.acknowledge(ack, service, err)
}

// rowState is the state of one row: in sync, pending, refused, or of another owner.
func (a *adapter) rowState(service string, r *nat44.Row, known bool) *messages.RowState {
	k := rowOf(r.Key)
	if a.claims.Owner(k) != service {
		return render.RowState(Name, r.Key, false, render.ErrContested)
	}
	if a.ranges.closed[r.Key] {
		return render.RowState(Name, r.Key, false, errClosed)
	}
	_, err := a.progress.Refusal(k)
	return render.RowState(Name, r.Key, known && !a.progress.Dirty(k) && err == nil, err)
}
