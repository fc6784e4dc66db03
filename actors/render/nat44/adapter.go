package nat44

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Name of the renderer.
const Name = "nat44"

// adapter renders services as NAT44 rows with access lists in front of them, and external
// configuration as rows, addresses and roles.
type adapter struct {
	// Set by New, read-only; the claims are the driver's.
	config   nat44.Config // as configured
	progress *render.Progress[object]
	claims   *render.Claims[object, nat44.Row, nat44.Row]

	// Desired state: changed by Plan, Surroundings and Settle.
	planned  nat44.Config // completed for the node
	views    map[string]*messages.ServiceView
	plans    map[string]*nat44.ServicePlan
	users    map[uint64]int32 // number of lists of services that name a backend, by ipv4
	ranges   *ranges
	set      *messages.InterfaceSet // nil = not known
	podCIDRs []netip.Prefix         // of the node; nil = not known
	hairpins []netip.Addr           // twice-NAT addresses of the agent that were in use before
	around   render.Surroundings    // when Settle was called last

	// Messages of its own: changed by Handle and After too, each in its file.
	external externalConfig
	rests    rests
	drains   drains

	// Actual state: changed by Adopt, Forget, Work and Record.
	have     *nat44.State    // nil = nothing is believed of this VPP
	doubtful map[object]bool // rows with a change that VPP has carried out in part
	spread   bool            // at the last read several workers did NAT
	settings bool            // the wanted settings and roles are in VPP
	refused  string          // why VPP refused roles
	another  string          // why nothing is written beside another client of VPP; "" = it is
	stays    string          // settings of that client that stay; "" = none
}

// New returns the renderer. An unset TwiceNAT is derived from the node.
func New(config nat44.Config) render.Renderer[object] {
	a := &adapter{
		progress: &render.Progress[object]{}, config: config, planned: config, views: map[string]*messages.ServiceView{}, plans: map[string]*nat44.ServicePlan{},
		ranges: newRanges(acl.Config{Routed: config.Unreachable, IPv6Elsewhere: config.IPv6Elsewhere}), external: externalConfig{gone: map[object]bool{}}, rests: rests{},
		drains: newDrains(config.DrainLimit), users: map[uint64]int32{}, doubtful: map[object]bool{},
	}
	a.claims = render.NewClaims(render.Rules[object, nat44.Row, nat44.Row]{
		Order: compare, Rank: func(r nat44.Row) int { return int(r.Rank) }, Resolve: a.resolve, Same: nat44.Row.Equal, Taken: a.taken,
	})
	return render.Renderer[object]{Name: Name, Noun: "rows", Roles: true, Claims: a.claims, Kind: a, Progress: a.progress, Mail: a, Remove: remove}
}

// resolve returns the row of the first claim. There is none if its source ranges cannot be
// enforced.
func (a *adapter) resolve(k object, claims []render.Claim[nat44.Row]) (nat44.Row, bool) {
	return claims[0].Value, !a.ranges.closed[k.Key]
}

// taken describes the row of another client in VPP under a key; "" = there is none.
func (a *adapter) taken(k object) string {
	if a.have == nil || k.part != row {
		return ""
	}
	if what, foreign := a.have.Foreign[k.Key]; foreign {
		return "VPP: " + what
	}
	return ""
}

func (a *adapter) Plan(service string, view *messages.ServiceView) {
	a.ranges.plan(service, view)
	if a.views[service] = view; view == nil {
		delete(a.views, service)
	}
	a.plan(service)
}

// plan translates one view into rows and claims them.
func (a *adapter) plan(service string) {
	var changed []object
	view := a.views[service]
	a.use(a.plans[service], -1)
	defer func() { a.use(a.plans[service], 1) }()
	if view == nil {
		delete(a.plans, service)
		changed = a.claims.Set(service, 0, nil)
	} else {
		config := a.planned
		config.Guarded = a.ranges.guarded(service)
		plan := nat44.Plan(view, config)
		a.plans[service] = plan
		wishes := make(map[object]nat44.Row, len(plan.Claims()))
		for _, r := range plan.Claims() {
			wishes[rowOf(r.Key)] = r
			// it may serve no more
			a.drains.stale = a.drains.stale || a.drains.concerns(rowOf(r.Key))
		}
		changed = a.claims.Set(service, view.GetCreated(), wishes)
	}
	for _, k := range changed {
		a.ranges.ownerChanged(k.Key)
		a.lead(k, a.held(k))
		a.drains.stale = a.drains.stale || a.drains.concerns(k)
		// to compute the status walks over all rows: not for each service
		a.external.stale = a.external.stale || a.concernsExternal(k)
	}
}

// planAgain translates services once more, because something changed that planning depends on.
func (a *adapter) planAgain(services []string) {
	for _, service := range services {
		a.plan(service)
	}
}

// configure adopts another configuration, and plans the services again that depend on the change.
// If only the ground differs, these are the services with addresses that Kubernetes has not
// allocated.
func (a *adapter) configure(planned nat44.Config) {
	before := a.planned
	planned.Pads = a.config.Pads && !a.spread
	if planned.Equal(before) {
		return
	}
	a.replaceHairpin(planned.TwiceNAT)
	a.planned, a.settings = planned, false
	services, groundChanged := slices.Sorted(maps.Keys(a.views)), !before.Ground.Equal(planned.Ground)
	if before.Ground = planned.Ground; planned.Equal(before) {
		services = slices.DeleteFunc(services, func(name string) bool {
			return !slices.ContainsFunc(a.views[name].GetFrontends(), func(f *messages.Frontend) bool { return rule.RankOf(f) >= rule.OfLoadBalancer })
		})
	}
	if a.ranges.config.Ground = planned.Ground; groundChanged {
		for _, service := range services {
			a.ranges.plan(service, a.views[service])
		}
	}
	a.planAgain(services)
	if o := &a.external; o.wants != nil && (planned.Pads != before.Pads || !planned.Tables.Equal(before.Tables)) {
		a.adoptExternal(o.wants)
	}
}

// surroundings takes the node and the interfaces: the twice-NAT address depends on the node, roles
// and access lists on the interfaces, what services may claim on both.
func (a *adapter) surroundings(s render.Surroundings) {
	if s.Begin != nil {
		planned := a.config.ForNode(s.Begin.GetNode().GetNode())
		a.podCIDRs = rule.Networks(s.Begin.GetNode().GetNode().GetPodCidrs())
		set := cmp.Or(s.Set, a.set)
		planned.Ground, planned.Tables = rule.NewGround(s.Begin, set, a.config.Ground.Reserved), tables(set)
		a.configure(planned)
	}
	if s.Set != nil && s.Set != a.set {
		known := a.ranges.known()
		a.ranges.interfaces(a.set, s.Set)
		if known && !a.ranges.known() {
			a.progress.Read("an interface with access lists has changed")
		}
		a.loseInterfaces(s.Set)
		a.set, a.settings, a.external.stale = s.Set, false, true
		a.drains.surroundings()
	}
}

// tables are the tables of an interface set, in which backends are reached.
func tables(set *messages.InterfaceSet) forwarding.Tables {
	var all []forwarding.Network
	for _, n := range set.GetTables() {
		if p, err := netip.ParsePrefix(n.GetNetwork()); err == nil {
			all = append(all, forwarding.Network{Prefix: p, Table: n.GetTable()})
		}
	}
	return forwarding.NewTables(all)
}

// loseInterfaces forgets the roles of interfaces that are gone, also if VPP was read before the
// first set.
func (a *adapter) loseInterfaces(now *messages.InterfaceSet) {
	if a.have == nil {
		return
	}
	gone := render.Replaced(a.set, now)
	for _, index := range a.have.Interfaces() {
		is := func(i *messages.Interface) bool { return i.GetSwIfIndex() == index }
		if !slices.ContainsFunc(now.GetInterfaces(), is) {
			gone = append(gone, index)
		}
	}
	for _, index := range gone {
		a.have.Lose(index)
	}
}

// replaceHairpin notes that the twice-NAT address in use has to leave VPP when another one replaces
// it.
func (a *adapter) replaceHairpin(now netip.Addr) {
	old := a.planned.TwiceNAT
	a.hairpins = slices.DeleteFunc(a.hairpins, func(h netip.Addr) bool { return h == now })
	if old.IsValid() && old != now && !slices.Contains(a.hairpins, old) {
		a.hairpins = append(a.hairpins, old)
	}
}

// Settle satisfies render.Kind: besides, it merges the rules of the access lists, and ends drains.
// The owners of the frontends depend on the barrier too.
func (a *adapter) Settle(s render.Surroundings) {
	if s.Begin != a.around.Begin || s.Set != a.around.Set {
		a.surroundings(s)
	}
	if s.Phase > a.around.Phase {
		a.ranges.ownersChanged() // a service that has not rendered owns nothing
		a.claims.Touch(a.drains.keys()...)
		a.drains.surroundings()
		a.settings = false // settings that are not needed any more leave VPP now
	}
	a.around = s
	if a.ranges.stale {
		plans, moved, turned := a.ranges.fit()
		closing := make([]object, len(turned))
		for i, k := range turned {
			closing[i] = rowOf(k)
		}
		a.claims.Change(closing, func() { a.ranges.closed = a.ranges.closing })
		a.planAgain(moved)
		a.claims.Concern(append(moved, a.ranges.merge(plans, a.dropsOf)...)...)
	}
	if a.ranges.isNew() && a.ranges.needed() {
		a.claims.Touch(missingLists, extraLists)
	}
	a.endDrains()
	if a.ranges.waiting(a.rowDirty) && !a.progress.Dirty(extraLists) {
		a.claims.Touch(extraLists)
	}
}

// rowDirty reports whether a row may not be as wanted.
func (a *adapter) rowDirty(k rule.Key) bool { return a.progress.Dirty(rowOf(k)) }

// dropsOf is the service whose drops count at a frontend. There is none while VPP holds the row of
// another service that may still render and own the frontend: foreign rules would drop its clients.
func (a *adapter) dropsOf(k rule.Key) (service string, claimed bool) {
	if a.have != nil && a.around.Phase < render.Passed {
		want := a.wanted(rowOf(k))
		if want != nil && a.anothers(want, a.held(rowOf(k))) || want == nil && a.held(rowOf(k)) != nil {
			return "", true
		}
	}
	if a.taken(rowOf(k)) != "" {
		return "", true
	}
	first, claimed := a.claims.First(rowOf(k))
	return first.Service, claimed
}

// held is the agent's row that VPP holds under a key; nil = there is none, or nothing is known.
func (a *adapter) held(k object) *nat44.Row {
	if a.have == nil {
		return nil
	}
	if r, found := a.have.Rows[k.Key]; found {
		return &r
	}
	return nil
}

func (a *adapter) State() render.State[object] {
	return render.State[object]{
		Settings: a.settings, RolesRefused: a.refused, Barred: a.barred(), Warning: a.warning(), Held: a.objects, Draining: len(a.drains.at),
		Summary: func() string {
			return fmt.Sprintf("%d rows of ours, %d of others", len(a.have.Rows), len(a.have.Foreign))
		},
	}
}

// warning is a problem that does not keep the renderer from being in sync; "" = none.
func (a *adapter) warning() string {
	switch {
	case a.ranges.absent:
		return "the plugin acl is not loaded (plugins in VPP's startup.conf): " +
			"frontends with source ranges are not served, and nothing is dropped by the address of the client"
	case a.stays != "":
		return a.stays
	case len(a.ranges.closed) > 0:
		return "frontends are not served, because their source ranges cannot be enforced: the services say why"
	case a.progress.Memory() > heap.Enough:
		return "VPP's memory is nearly used up: connections to endpoints that leave a service are cut, " +
			"and services may lack endpoints; see main-heap-size in VPP's startup.conf"
	}
	return ""
}

// noteAnother works out whether another client of VPP has set up NAT44 in a way with which services
// cannot be served.
func (a *adapter) noteAnother() {
	want := a.settingsWanted()
	another := a.have.Another(want)
	a.stays = a.have.Keeps(want)
	if another == a.another {
		return
	}
	a.another, a.settings = another, false
	a.claims.Touch(slices.Collect(a.claims.Keys())...)
	for service := range a.plans {
		a.claims.Concern(service)
	}
}

// barred is why most services cannot be served in this VPP; "" = they can.
func (a *adapter) barred() string {
	if a.another != "" {
		return a.another
	}
	n, first := 0, (*messages.Interface)(nil)
	for _, i := range a.set.GetInterfaces() {
		if i.GetOwnAddress() != "" {
			if n++; first == nil {
				first = i
			}
		}
	}
	if n == 0 {
		return ""
	}
	const text = "NAT44 cannot serve the pods behind %d interfaces: VPP itself has their addresses in their tables, " +
		"first %s behind %s; set renderer: auto or cnat and restart the agent"
	return fmt.Sprintf(text, n, first.GetOwnAddress(), first.GetName())
}

// part is the kind of an object, in the order in which they are brought to VPP.
type part uint8

const (
	lists   part = iota // rules that access lists lack
	row                 // the row of a frontend
	surplus             // rules that access lists have too many of
)

// object names what the renderer keeps in VPP: the rows by their frontends, and the access lists in
// front of all rows as two objects.
type object struct {
	rule.Key
	part part
}

// String is the frontend of a row.
func (o object) String() string {
	switch o.part {
	case lists:
		return "access lists"
	case surplus:
		return "superfluous access lists"
	default:
		return o.Key.String()
	}
}

// compare orders objects.
func compare(a, b object) int { return cmp.Or(cmp.Compare(a.part, b.part), a.Key.Compare(b.Key)) }

// rowOf is the object of a row.
func rowOf(k rule.Key) object { return object{k, row} }

// Objects of the access lists.
var (
	missingLists = object{part: lists}
	extraLists   = object{part: surplus}
)
