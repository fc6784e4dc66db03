package nat44

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/address"
	external "github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	layers "github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// errClosed is the error of a row whose source ranges cannot be enforced.
var errClosed = errors.New("not served, because source ranges for the address cannot be enforced")

// External configuration claims rows under one name per source, after every service.
const (
	claimPrefix   = "external:"
	ownerServices = "services"
)

// triesUntilFailed is how often VPP may refuse an entry before it counts as failed: the obstacle
// may be about to leave.
const triesUntilFailed = 3

// externalConfig is what the renderer knows of external configuration.
type externalConfig struct {
	wants   *external.Wants  // nil = none yet
	names   map[uint64]bool  // the backends of wants, by ipv4
	retired external.Retired // also of an earlier incarnation of the actor that keeps it
	gone    map[object]bool  // rows that were wanted before and may still be in VPP
	sent    *external.Status
	stale   bool // the status that was sent may be outdated
}

func (*adapter) Asks() []string { return []string{address.External} }

// Handle satisfies render.Mail: external configuration, the ends of rests, and the numbers
// of sessions to draining backends.
func (a *adapter) Handle(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *external.Wants:
		if o := &a.external; o.wants == nil || m.Generation > o.wants.Generation {
			a.adoptExternal(m)
		}
	case *sessions.Counted:
		a.handleSessions(c, m)
	case *listRested:
		a.drains.resting = false
	case *rested:
		a.rests.over(m)
	}
}

// adoptExternal replaces the wishes of external configuration. Services keep every row that they
// want.
func (a *adapter) adoptExternal(m *external.Wants) {
	o := &a.external
	if m.Complete && (o.wants == nil || !o.wants.Complete) {
		// rows of external configuration from an earlier run may leave now
		defer func() { a.claims.Touch(a.leftBehind()...) }()
	}
	rows := m.Merged.Rows(a.planned)
	o.names = map[uint64]bool{}
	sources := map[string]bool{}
	for source := range rows {
		sources[claimPrefix+source] = true
	}
	for _, name := range o.claimants() {
		sources[name] = true
		for _, k := range a.claims.Objects(name) {
			o.gone[k] = true
		}
	}
	o.wants, o.stale, a.settings = m, true, false
	o.retired = o.retired.With(m.Retired.Addresses, m.Retired.Roles)
	for _, withdraw := range []bool{false, true} {
		// avoids a gap while ownership moves between sources
		for _, name := range slices.Sorted(maps.Keys(sources)) {
			of := rows[strings.TrimPrefix(name, claimPrefix)]
			if withdraw != (len(of) == 0) {
				continue
			}
			wishes := make(map[object]nat44.Row, len(of))
			for _, r := range of {
				r.Rank = rule.OfExternalConfiguration
				wishes[rowOf(r.Key)] = r
				for _, l := range r.Locals {
					o.names[ipv4(l.Endpoint())] = true
				}
			}
			for _, k := range a.claims.Set(name, 0, wishes) {
				a.ranges.ownerChanged(k.Key)
			}
		}
	}
}

// claimants are the names under which sources claim rows, ordered.
func (o *externalConfig) claimants() []string {
	if o.wants == nil {
		return nil
	}
	names := map[string]bool{}
	o.wants.Merged.Wanted(func(e *layers.Entry) {
		if e.Mapping() != nil {
			names[claimPrefix+e.Source] = true
		}
	})
	return slices.Sorted(maps.Keys(names))
}

// settings adds NAT addresses and roles to what VPP should have.
func (o *externalConfig) settings(want *nat44.Want, set *messages.InterfaceSet) {
	if o.wants == nil {
		return
	}
	want.Pool, want.RetiredPool = o.wants.Merged.Addresses(), o.retired.Addresses
	want.Outputs = map[uint32]bool{}
	roles := o.wants.Merged.Roles()
	for _, i := range set.GetInterfaces() {
		index := i.GetSwIfIndex()
		switch roles[i.GetName()] {
		case layers.RoleOutput:
			want.Outputs[index] = true
		case layers.RoleNAT:
			want.Interfaces[index] = true
		case layers.RoleNone:
			want.Interfaces[index] = needed(i)
		}
		was := o.retired.Roles[i.GetName()]
		if was == layers.RoleOutput && roles[i.GetName()] != layers.RoleOutput {
			want.Outputs[index] = false
		}
		if (was == layers.RoleNAT || was == layers.RoleOutput) && roles[i.GetName()] == "" && !needed(i) {
			want.Interfaces[index] = false
		}
	}
}

// spares reports whether VPP holds a row of external configuration that may not be removed yet,
// because not every source has been read. A row that was wanted in this incarnation may be removed.
func (a *adapter) spares(k object) bool {
	if a.external.wants != nil && a.external.wants.Complete || a.external.gone[k] {
		return false
	}
	held := a.held(k)
	return held != nil && nat44.External(held.Tag)
}

// concernsExternal reports whether external configuration wants, wanted or has a row under the key.
func (a *adapter) concernsExternal(k object) bool {
	held := a.held(k)
	return a.external.gone[k] || held != nil && nat44.External(held.Tag) || slices.ContainsFunc(a.claims.At(k), func(c render.Claim[nat44.Row]) bool {
		return strings.HasPrefix(c.Service, claimPrefix)
	})
}

// leftBehind lists the rows of external configuration in VPP that are not wanted and may be
// removed. A row whose endpoint keeps connections of a service stays, and drains.
func (a *adapter) leftBehind() (keys []object) {
	if a.have == nil {
		return nil
	}
	for k, r := range a.have.Rows {
		if o := rowOf(k); nat44.External(r.Tag) && !a.claims.Claimed(o) && a.Next(o).Cost > 0 {
			keys = append(keys, o)
		}
	}
	slices.SortFunc(keys, compare)
	return keys
}

// After satisfies render.Mail: it measures the work on access lists, and sends the list of
// draining backends and the status of external configuration, if they have changed.
func (a *adapter) After(c *runtime.Context, known bool) {
	a.rests.after(c)
	a.sendDraining(c)
	o := &a.external
	if o.wants == nil || !o.stale && o.sent != nil && o.sent.Settled {
		return
	}
	o.stale = false
	now := a.status(known)
	if o.sent != nil && o.sent.Generation == now.Generation && o.sent.Settled == now.Settled && maps.Equal(o.sent.Entries, now.Entries) {
		return
	}
	o.sent = now
	c.Send(c.PID(address.External), now)
}

// status is the state of every entry.
func (a *adapter) status(known bool) *external.Status {
	s := &external.Status{Generation: a.external.wants.Generation, Entries: map[string]external.State{}}
	maps.DeleteFunc(a.external.gone, func(k object, _ bool) bool { return known && (!a.progress.Dirty(k) || a.claims.Claimed(k)) })
	s.Settled = known && a.settings && len(a.external.gone) == 0 && (!a.external.wants.Complete || len(a.leftBehind()) == 0)
	a.external.wants.Merged.Wanted(func(e *layers.Entry) {
		var state external.State
		switch {
		case e.Mapping() != nil:
			state = a.mappingState(e.Source, e.Mapping(), known)
		case e.Address().IsValid():
			state = a.settingState(known && slices.Contains(a.have.Pool, e.Address()))
		default:
			state = a.roleState(e.Role(), known)
		}
		s.Entries[e.Name] = state
		s.Settled = s.Settled && state.State != external.Pending
	})
	return s
}

// mappingState is the state of one mapping.
func (a *adapter) mappingState(source string, mapping *layers.Mapping, known bool) external.State {
	k := rowOf(mapping.Key)
	tries, refused := a.progress.Refusal(k)
	switch owner, why := a.claims.Owner(k), mapping.Refused(a.planned); {
	case why != "":
		return external.State{State: external.Refused, Why: why}
	case !known:
		return external.State{State: external.Pending, Why: "what VPP holds is not known"}
	case owner != "" && owner != claimPrefix+source:
		return external.State{State: external.Refused, Owner: owner, Why: "is in use by " + owner}
	case refused != nil && tries >= triesUntilFailed:
		return external.State{State: external.Failed, Why: refused.Error()}
	case refused != nil:
		return external.State{State: external.Pending, Why: refused.Error()}
	case a.progress.Dirty(k):
		return external.State{State: external.Pending}
	default:
		return external.State{State: external.InSync}
	}
}

// settingState is the state of an entry that is not a row.
func (a *adapter) settingState(held bool) external.State {
	tries, refused := a.progress.Refused()
	switch {
	case held:
		return external.State{State: external.InSync}
	case refused != nil && tries >= triesUntilFailed:
		return external.State{State: external.Failed, Why: refused.Error()}
	default:
		return external.State{State: external.Pending}
	}
}

// roleState is the state of the role of an interface.
func (a *adapter) roleState(role layers.InterfaceRole, known bool) external.State {
	at := slices.IndexFunc(a.set.GetInterfaces(), func(i *messages.Interface) bool { return i.GetName() == role.Name })
	switch {
	case !known || a.set == nil:
		return external.State{State: external.Pending, Why: "what VPP holds is not known"}
	case at < 0:
		return external.State{State: external.Failed, Why: "VPP has no interface of this name"}
	}
	i := a.set.GetInterfaces()[at]
	roles, output := a.have.Roles[i.GetSwIfIndex()], a.have.Output[i.GetSwIfIndex()]
	switch role.Role {
	case layers.RoleOutput:
		return a.settingState(output && roles == 0)
	case layers.RoleNAT:
		return a.settingState(roles&nat44.Outside != 0)
	default:
		if needed(i) {
			return external.State{State: external.Refused, Owner: ownerServices, Why: "services need it"}
		}
		return a.settingState(roles == 0)
	}
}
