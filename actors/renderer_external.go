package actors

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// externalWants tells the nat44 renderer what external configuration wants; always complete. It is repeated until an externalStatus of its
// generation comes, and immutable.
type externalWants struct {
	generation uint64
	merged     *external.Merged
	retired    retiredExternal
	// complete says that every source has spoken. Before, what an earlier run left in VPP of external configuration stays there.
	complete bool
}

// retiredExternal is what external configuration has wanted and may not want any more, where VPP does not say whose it is.
type retiredExternal struct {
	addresses []netip.Addr
	roles     map[string]external.Role // by name of the interface: output if it ever was, otherwise the last one
}

// with is a copy with more in it.
func (x retiredExternal) with(addresses []netip.Addr, roles map[string]external.Role) retiredExternal {
	all := retiredExternal{slices.Clone(x.addresses), maps.Clone(x.roles)}
	if all.roles == nil {
		all.roles = map[string]external.Role{}
	}
	for _, a := range addresses {
		if at, found := slices.BinarySearchFunc(all.addresses, a, netip.Addr.Compare); !found {
			all.addresses = slices.Insert(all.addresses, at, a)
		}
	}
	for name, role := range roles {
		if all.roles[name] != external.RoleOutput { // which has to go whatever comes instead
			all.roles[name] = role
		}
	}
	return all
}

// externalStatus answers externalWants: what became of each entry, by its name. It is told again when something changes, and immutable.
type externalStatus struct {
	generation uint64
	entries    map[string]externalState
	settled    bool // nothing of it is under way, removals included
}

// externalState is what became of one entry.
type externalState struct{ State, Owner, Why string }

// States of entries.
const (
	externalInSync  = "in-sync"
	externalPending = "pending"
	externalFailed  = "failed"
	// externalRefused: somebody else has it; Owner says who.
	externalRefused = "refused"
	// externalShadowed: a layer above has an entry of the same name.
	externalShadowed = "shadowed"
)

// External configuration is one claimant per source, and one account for what must leave VPP.
const (
	externalClaim = "external:"
	externalGone  = "external:*"
	ownerServices = "services"
)

// externalTries is how often VPP may refuse a row before that counts: what stands in its way may be about to go.
const externalTries = 3

// exterior is what the nat44 renderer knows of external configuration.
type exterior struct {
	wants   *externalWants  // nil = nothing has been heard
	retired retiredExternal // also what was said by an earlier incarnation of the actor that keeps it
	told    *externalStatus
	stale   bool // what was told may not be true any more
}

// needed reports whether services need the roles of an interface.
func needed(i *messages.Interface) bool { return i.GetFrontend() || i.GetBackend() }

// adoptExternal changes what external configuration wants. Services are the elder ones, so they keep every row that they want.
func (r *renderer) adoptExternal(c *runtime.Context, m *externalWants) {
	o := &r.outside
	if o.wants != nil && m.generation < o.wants.generation {
		return // overtaken
	}
	o.stale = true
	if o.wants != nil && m.generation == o.wants.generation {
		o.told = nil // it was not heard
		return
	}
	if m.complete && (o.wants == nil || !o.wants.complete) {
		r.swept = false // what an earlier run left of external configuration may go now
	}
	rows := m.merged.Rows(r.planned)
	sources := map[string]bool{}
	for source := range rows {
		sources[externalClaim+source] = true
	}
	var before []nat44.Key
	for _, name := range o.claimants() {
		sources[name] = true
		before = append(before, r.claims.Of(name)...)
	}
	o.wants, r.globals = m, true
	o.retired = o.retired.with(m.retired.addresses, m.retired.roles)
	others := map[string]bool{}
	for _, withdraw := range []bool{true, false} { // what moves between sources is nobody's for no moment that counts
		for _, name := range sortedKeys(sources) {
			of := rows[strings.TrimPrefix(name, externalClaim)]
			if withdraw != (len(of) == 0) {
				continue
			}
			for _, k := range r.claims.Set(name, math.MaxInt64, of) {
				r.touch(k)
				r.affected(k, others)
			}
		}
	}
	r.leave(externalGone, before)
	r.answerEach(c, sortedKeys(others))
}

// claimants are the names that claims have of the sources that own mappings, ordered.
func (o *exterior) claimants() []string {
	if o.wants == nil {
		return nil
	}
	names := map[string]bool{}
	o.wants.merged.Wanted(func(e *external.Entry) {
		if e.Mapping() != nil {
			names[externalClaim+e.Source] = true
		}
	})
	return sortedKeys(names)
}

// settings adds NAT addresses and roles to what VPP should have.
func (o *exterior) settings(want *nat44.Want, set *messages.InterfaceSet) {
	if o.wants == nil {
		return
	}
	want.Pool, want.RetiredPool = o.wants.merged.Addresses(), o.retired.addresses
	want.Outputs = map[uint32]bool{}
	roles := o.wants.merged.Roles()
	for _, i := range set.GetInterfaces() {
		index := i.GetSwIfIndex()
		switch roles[i.GetName()] {
		case external.RoleOutput:
			want.Outputs[index] = true
		case external.RoleNAT:
			want.Interfaces[index] = true
		case external.RoleNone:
			want.Interfaces[index] = needed(i)
		}
		was := o.retired.roles[i.GetName()]
		if was == external.RoleOutput && roles[i.GetName()] != external.RoleOutput {
			want.Outputs[index] = false
		}
		if (was == external.RoleNAT || was == external.RoleOutput) && roles[i.GetName()] == "" && !needed(i) {
			want.Interfaces[index] = false
		}
	}
}

// spares reports whether VPP holds a row of external configuration that nobody may remove yet, because not every source has spoken. What was
// wanted and is not any more may go.
func (r *renderer) spares(k nat44.Key) bool {
	if r.outside.wants != nil && r.outside.wants.complete || r.leaving[externalGone][k] {
		return false
	}
	row := r.held(k)
	return row != nil && nat44.External(row.Tag)
}

// leftovers reports whether VPP holds rows of external configuration that nobody wants and that may go: those of an earlier life.
func (r *renderer) leftovers() bool {
	for k, row := range r.have.Rows {
		if nat44.External(row.Tag) && r.wanted(k) == nil && !r.spares(k) {
			return true
		}
	}
	return false
}

// spare enters what is spared into what VPP should hold.
func (r *renderer) spare(want *nat44.Want) {
	if r.have == nil {
		return
	}
	for k, row := range r.have.Rows {
		if _, wanted := want.Rows[k]; !wanted && r.spares(k) {
			want.Rows[k] = row
		}
	}
}

// inquire asks for external configuration, as long as nothing has been heard of it.
func (r *renderer) inquire(c *runtime.Context) {
	if r.outside.wants == nil {
		c.Send(c.PID(PathExternal), &messages.Resync{Sibling: r.name, Incarnation: c.Incarnation()})
	}
}

// tellExternal tells what became of external configuration, if that is news.
func (r *renderer) tellExternal(c *runtime.Context) {
	o := &r.outside
	if o.wants == nil || !o.stale && o.told != nil && o.told.settled {
		return
	}
	if o.told != nil && !o.stale && r.work != nil {
		return // nothing has changed before it is done
	}
	o.stale = false
	now := r.externalStatus()
	if o.told != nil && o.told.generation == now.generation && o.told.settled == now.settled && maps.Equal(o.told.entries, now.entries) {
		return
	}
	o.told = now
	c.Send(c.PID(PathExternal), now)
}

// externalStatus looks what became of every entry.
func (r *renderer) externalStatus() *externalStatus {
	s := &externalStatus{generation: r.outside.wants.generation, entries: map[string]externalState{}}
	conflicts := map[string]string{}
	for _, name := range r.outside.claimants() {
		for _, conflict := range r.claims.Conflicts(name) {
			conflicts[conflict.GetFrontend()] = conflict.GetOwner()
		}
	}
	s.settled = r.have != nil && !r.globals && r.left(externalGone) && !r.leftovers()
	r.outside.wants.merged.Wanted(func(e *external.Entry) {
		var state externalState
		switch {
		case e.Mapping() != nil:
			state = r.mappingState(e.Mapping().Key, conflicts)
		case e.Address().IsValid():
			state = r.settingState(r.have != nil && slices.Contains(r.have.Pool, e.Address()))
		default:
			state = r.roleState(e.Role())
		}
		s.entries[e.Name] = state
		s.settled = s.settled && state.State != externalPending
	})
	return s
}

// mappingState is what became of one mapping.
func (r *renderer) mappingState(k nat44.Key, conflicts map[string]string) externalState {
	failed := r.failed[k]
	dirty, listed := r.dirty[k]
	switch owner := conflicts[k.String()]; {
	case owner != "":
		return externalState{externalRefused, owner, "is in use by " + owner}
	case r.have == nil:
		return externalState{State: externalPending, Why: causeUnknown}
	case failed != nil && failed.tries >= externalTries:
		return externalState{State: externalFailed, Why: failed.err.Error()}
	case failed != nil:
		return externalState{State: externalPending, Why: failed.err.Error()}
	case dirty || listed:
		return externalState{State: externalPending}
	default:
		return externalState{State: externalInSync}
	}
}

// settingState is what became of something that is not a row.
func (r *renderer) settingState(held bool) externalState {
	switch {
	case held:
		return externalState{State: externalInSync}
	case r.refused != nil && r.refusal >= externalTries:
		return externalState{State: externalFailed, Why: r.refused.Error()}
	default:
		return externalState{State: externalPending}
	}
}

// roleState is what became of the role of an interface.
func (r *renderer) roleState(role external.InterfaceRole) externalState {
	at := slices.IndexFunc(r.set.GetInterfaces(), func(i *messages.Interface) bool { return i.GetName() == role.Name })
	switch {
	case r.have == nil || !r.located():
		return externalState{State: externalPending, Why: causeUnknown}
	case at < 0:
		return externalState{State: externalFailed, Why: "VPP has no interface of this name"}
	}
	i := r.set.GetInterfaces()[at]
	roles, output := r.have.Roles[i.GetSwIfIndex()], r.have.Output[i.GetSwIfIndex()]
	switch role.Role {
	case external.RoleOutput:
		return r.settingState(output && roles == 0)
	case external.RoleNAT:
		return r.settingState(roles == nat44.Both)
	default:
		if needed(i) {
			return externalState{externalRefused, ownerServices, "services need it"}
		}
		return r.settingState(roles == 0)
	}
}
