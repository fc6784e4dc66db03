package cnat

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Name of the renderer.
const Name = "cnat"

// adapter renders services as translations.
type adapter struct {
	// Set by New, read-only; the claims are the driver's.
	config   cnat.Config // as configured
	progress *render.Progress[rule.Key]
	claims   *render.Claims[rule.Key, cnat.Row, cnat.Row]

	// Desired state: changed by Plan, Surroundings and Settle.
	planned cnat.Config // completed for the node
	views   map[string]*messages.ServiceView
	plans   map[string]*cnat.ServicePlan
	remote  *cnat.Remote           // endpoints on other nodes
	around  render.Surroundings    // when Settle was called last
	set     *messages.InterfaceSet // nil = not known

	// Actual state: changed by Adopt, Forget, Work and Record.
	have     *cnat.State  // nil = nothing is believed of this VPP
	last     *cnat.State  // state of this VPP before the connection ended
	others   cnat.Others  // of have, as it is wanted now
	kept     netip.Prefix // a network of another client in which targets are; invalid = there is none
	settings bool         // settings and interfaces are in VPP, as they are wanted
	refused  string       // why VPP refused interfaces
	needed   bool         // a service has had rows: interfaces need the nodes of CNAT
}

// New returns the renderer. Unset addresses of SNAT are derived from the node.
func New(config cnat.Config) render.Renderer[rule.Key] {
	a := &adapter{
		progress: &render.Progress[rule.Key]{}, config: config, planned: config, views: map[string]*messages.ServiceView{}, plans: map[string]*cnat.ServicePlan{}, remote: cnat.NewRemote(config.Others),
	}
	a.claims = render.NewClaims(render.Rules[rule.Key, cnat.Row, cnat.Row]{
		Order: rule.Key.Compare, Rank: func(r cnat.Row) int { return int(r.Rank) }, Resolve: a.resolve, Same: cnat.Row.Equal, Taken: a.taken,
	})
	return render.Renderer[rule.Key]{Name: Name, Noun: "rows", Roles: true, Claims: a.claims, Kind: a, Progress: a.progress, Remove: remove}
}

// resolve returns the row of the first claim, unless VPP would crash with it, or another client of
// VPP decides about sources of its family.
func (a *adapter) resolve(k rule.Key, claims []render.Claim[cnat.Row]) (cnat.Row, bool) {
	_, unsafe := a.below(k)
	return claims[0].Value, len(claims[0].Value.Backends) > 0 && !unsafe && a.others.Serves(k.Addr.Is6())
}

// below returns the route that would make VPP crash if it had the row.
func (a *adapter) below(k rule.Key) (netip.Prefix, bool) {
	if a.have == nil {
		return netip.Prefix{}, false
	}
	network, is := a.have.Below[k.Addr]
	return network, is
}

// addresses are the addresses of rows that Kubernetes has not allocated.
func (a *adapter) addresses() []netip.Addr {
	found := map[netip.Addr]bool{}
	for k := range a.claims.Keys() {
		if first, _ := a.claims.First(k); first.Value.RealIP {
			found[k.Addr] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), netip.Addr.Compare)
}

// taken describes the translation of another client that VPP holds under a key; "" = none.
func (a *adapter) taken(k rule.Key) string {
	if a.have == nil {
		return ""
	}
	if h, held := a.have.Rows[k]; !held || h.Ours {
		return ""
	}
	return "VPP: a translation of another client"
}

func (a *adapter) Plan(service string, view *messages.ServiceView) {
	if a.views[service] = view; view == nil || !a.concerns(view) {
		delete(a.views, service)
	}
	a.plan(service)
}

// concerns reports whether CNAT serves a family of one of the frontends. Most services have none
// where few have IPv6.
func (a *adapter) concerns(view *messages.ServiceView) bool {
	return a.config.IPv4 || slices.ContainsFunc(view.GetFrontends(), func(f *messages.Frontend) bool { return strings.Contains(f.GetAddress(), ":") })
}

// plan translates one view into rows and claims them.
func (a *adapter) plan(service string) {
	view, before := a.views[service], a.plans[service]
	if view == nil {
		a.count(before, -1)
		delete(a.plans, service)
		a.claims.Set(service, 0, nil)
		return
	}
	plan := cnat.Plan(view, a.planned)
	a.plans[service] = plan
	if len(plan.Rows) > 0 && !a.needed {
		a.needed, a.settings = true, false
	}
	a.count(plan, 1)
	a.count(before, -1)
	wishes := make(map[rule.Key]cnat.Row, len(plan.Rows))
	for _, r := range plan.Claims() {
		wishes[r.Key] = r
	}
	a.claims.Set(service, view.GetCreated(), wishes)
}

// count adds the endpoints of a plan to remote (n = 1), or takes them away (n = -1).
func (a *adapter) count(plan *cnat.ServicePlan, n int) {
	if plan == nil {
		return
	}
	for _, addr := range plan.Remote {
		a.remote.Count(addr, n)
	}
}

// surroundings takes the node and the interfaces: the addresses of source NAT depend on the node,
// the nodes of CNAT on the interfaces, what services may claim on both.
func (a *adapter) surroundings(s render.Surroundings) {
	if s.Begin != nil {
		planned := a.config.ForNode(s.Begin.GetNode().GetNode()).InCluster(s.Begin)
		planned.Ground = rule.NewGround(s.Begin, cmp.Or(s.Set, a.set), a.config.Ground.Reserved)
		planned.OthersNAT = a.others.Settings
		a.configure(planned)
		a.noteOthers()
	}
	if s.Set != nil && s.Set != a.set {
		for _, index := range render.Replaced(a.set, s.Set) {
			if a.have != nil {
				a.have.Lose(index)
			}
		}
		if !slices.Equal(ownAddresses(a.set), ownAddresses(s.Set)) {
			a.claims.Concern(slices.Sorted(maps.Keys(a.plans))...) // see unreachable
		}
		a.set, a.settings = s.Set, false
	}
}

// configure adopts another configuration, and plans the services again.
func (a *adapter) configure(planned cnat.Config) {
	if planned.Equal(a.planned) {
		return
	}
	if !slices.Equal(planned.Others, a.planned.Others) {
		a.remote = cnat.NewRemote(planned.Others)
		for _, plan := range a.plans {
			a.count(plan, 1)
		}
		a.remote.Settle()
	}
	a.planned, a.settings = planned, false
	for _, service := range slices.Sorted(maps.Keys(a.views)) {
		a.plan(service)
	}
}

// noteOthers works out what of VPP's source NAT belongs to another client, and plans accordingly.
func (a *adapter) noteOthers() {
	now := cnat.Others{Whose: cnat.NoSNAT()}
	if a.have != nil {
		now = a.have.Others(a.planned.Want())
	}
	if now == a.others {
		return
	}
	a.settings = false
	keys := slices.Collect(a.claims.Keys())
	if now.Whose == a.others.Whose && now.Local == a.others.Local {
		keys = nil
	}
	a.claims.Change(keys, func() { a.others = now })
	planned := a.planned
	planned.OthersNAT = now.Settings
	a.configure(planned)
}

// Settle satisfies render.Kind. Targets that no service has any more go when all services have
// rendered. They wait while services render whose rows VPP holds already, as after a restart of the
// agent.
func (a *adapter) Settle(s render.Surroundings) {
	if s.Begin != a.around.Begin || s.Set != a.around.Set {
		a.surroundings(s)
	}
	a.settings = a.settings && (a.around.Phase == render.Passed) == (s.Phase == render.Passed)
	a.around = s
	if waits := s.Phase == render.Rendering && a.progress.Pending() == 0; !waits && a.remote.Settle() {
		a.settings = false
	}
}

// wanted is the row that VPP should hold under a key; nil = none. VPP does not give back the memory
// of a deleted row. So while memory is low, no row is replaced for another spread; while it is
// critical, no row gets further backends.
func (a *adapter) wanted(k rule.Key) *cnat.Row {
	r, found := a.claims.Desired(k)
	if !found {
		return nil
	}
	if level := a.progress.Memory(); level > heap.Enough && a.have != nil {
		if held, is := a.have.Rows[k]; is && held.Ours {
			r.Sticky, r.Maglev = held.Sticky, held.Maglev
			if level == heap.Critical {
				r = r.Within(max(1, len(held.Backends)), held.Backends)
			}
		}
	}
	return &r
}

// lacks returns an error if VPP has no memory for the row as the service wants it.
func (a *adapter) lacks(r *cnat.Row) error {
	if a.progress.Memory() == heap.Enough {
		return nil
	}
	switch want := a.wanted(r.Key); {
	case want == nil:
	case len(want.Backends) < len(r.Backends):
		return fmt.Errorf("%w: it has %d of %d endpoints", heap.ErrLow, len(want.Backends), len(r.Backends))
	case want.Sticky != r.Sticky || want.Maglev != r.Maglev:
		return fmt.Errorf("%w: session affinity, or how connections are spread, is as before", heap.ErrLow)
	}
	return nil
}

// held is the agent's row that VPP holds under a key; nil = there is none, or nothing is known.
func (a *adapter) held(k rule.Key) *cnat.Held {
	if a.have == nil {
		return nil
	}
	a.have.Settle(k, a.wanted(k))
	if h, found := a.have.Rows[k]; found && h.Ours {
		return &h
	}
	return nil
}

func (a *adapter) State() render.State[rule.Key] {
	return render.State[rule.Key]{
		Settings: a.settings, RolesRefused: a.refused, Barred: a.barred(), Warning: a.warning(), Held: a.objects, Summary: a.summary,
	}
}

// warning is a problem that does not keep the renderer from being in sync; "" = none.
func (a *adapter) warning() string {
	left := a.remote.Left()
	switch {
	case a.needed && a.others.Settings:
		return a.othersText()
	case a.kept.IsValid():
		return fmt.Sprintf("clients outside keep their addresses before endpoints in %s, which another client of VPP excludes from source NAT", a.kept)
	case left > 0:
		const text = "clients outside keep their addresses before %d endpoints on other nodes: " +
			"there is no room for that many outside of the pod networks"
		return fmt.Sprintf(text, left)
	case a.progress.Memory() > heap.Enough:
		return "VPP's memory is nearly used up: services may lack endpoints; see main-heap-size in VPP's startup.conf"
	}
	if own := ownAddresses(a.set); a.config.IPv4 && len(own) > 0 {
		const text = "connections of a pod to itself through a service are lost, unless the CNI has set classifiers (docs/globals.md): " +
			"VPP itself has the addresses of %d pods in their tables, first %s"
		return fmt.Sprintf(text, len(own), own[0])
	}
	return ""
}

// barred is why CNAT cannot serve IPv4; "" = it can. Without IPv4 most services are not served.
func (a *adapter) barred() string {
	if !a.config.IPv4 || a.others.Serves(false) {
		return ""
	}
	return a.othersText()
}

// othersText says what belongs to another client of VPP, and what that costs.
func (a *adapter) othersText() string {
	var lost []string
	for i, family := range []string{"IPv4", "IPv6"} {
		if !a.others.Serves(i == 1) {
			lost = append(lost, fmt.Sprintf("CNAT does not serve %s, because %s", family, a.othersAddress(i == 1)))
		}
	}
	if len(lost) == 0 || len(lost) == 1 && a.config.IPv4 {
		lost = append(lost, "sources of clients are replaced as it wants")
	}
	return "another client of VPP has set up source NAT of CNAT, which stays as it is: " + strings.Join(lost, "; ")
}

// othersAddress names the address of another client.
func (a *adapter) othersAddress(ip6 bool) string {
	addr := a.others.Whose[0]
	if ip6 {
		addr = a.others.Whose[1]
	}
	return fmt.Sprintf("its SNAT address %s belongs to another client of VPP (show cnat snat-policy)", addr)
}

// Forget satisfies render.Kind. For the same VPP, the old state is kept, because a dump does not
// return everything.
func (a *adapter) Forget(restarted bool) {
	if a.have != nil {
		a.last = a.have
	}
	if restarted {
		a.last = nil
	}
	a.have = nil
	a.noteOthers()
}

// interfaces are the interfaces to read: the wanted ones, and those with CNAT nodes before.
func (a *adapter) interfaces(before *cnat.State) []uint32 {
	found := slices.Collect(maps.Keys(a.settingsWanted().Interfaces))
	if before != nil {
		found = append(found, before.Interfaces()...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (a *adapter) Reader(bool) func(context.Context, link.Caller) (any, error) {
	ip4, interfaces, addresses := a.config.IPv4, a.interfaces(cmp.Or(a.have, a.last)), a.addresses()
	return func(ctx context.Context, vpp link.Caller) (any, error) {
		return cnat.Read(ctx, vpp, ip4, interfaces, addresses)
	}
}

func (a *adapter) Adopt(read any, known bool) (drifted []rule.Key, settings int) {
	state, before := read.(*cnat.State), cmp.Or(a.have, a.last) //nolint:forcetypeassert // Reader made it
	state.Inherit(before, a.wanted)
	a.last, a.settings = nil, false
	a.claims.Change(a.contended(state), func() { a.have = state })
	a.noteOthers()
	if !known || before == nil {
		return nil, 0
	}
	first, last := cnat.DiffSettings(a.have, a.settingsWanted())
	for _, op := range append(first, last...) {
		tables, had := before.Attached[op.Interface]
		// otherwise VPP has not got it yet
		had = had && (tables == nil || *tables == op.Tables)
		if op.Verb == cnat.SetSNAT && before.SNAT == op.SNAT || op.Verb == cnat.Attach && had {
			settings++
		}
	}
	drifted = slices.DeleteFunc(render.Drifted(before.Rows, state.Rows, cnat.Held.Same), func(k rule.Key) bool {
		return !before.Rows[k].Ours && !state.Rows[k].Ours
	})
	return drifted, settings
}

// contended lists the claimed keys under which another client has or had a translation, and the
// keys for which below changes.
func (a *adapter) contended(now *cnat.State) (keys []rule.Key) {
	for k := range a.claims.Keys() {
		_, was := a.below(k)
		_, is := now.Below[k.Addr]
		if h, held := now.Rows[k]; held && !h.Ours || a.taken(k) != "" || was != is {
			keys = append(keys, k)
		}
	}
	return keys
}

// Next satisfies render.Kind. The bytes are as if each row were the only one of its address.
func (a *adapter) Next(k rule.Key) (s render.Step) {
	want, held := a.wanted(k), a.held(k)
	of := func(r *cnat.Row) int {
		return heap.CNAT().Of(len(r.Backends), r.Maglev || r.Sticky) + heap.CNAT().Address
	}
	if s.Wanted = want != nil; s.Wanted {
		s.Bytes = of(want)
	}
	if held != nil {
		s.Held = of(&held.Row)
	}
	ops := cnat.DiffRow(held, want)
	s.Cost, s.Ops, s.Gate = cnat.Cost(ops), render.Boxed(ops), a.gate(want, held)
	return s
}

// gate says when a row may be changed. Before the barrier, no row is changed at an address that
// several services may claim, because VPP does not say whose row it holds.
func (a *adapter) gate(want *cnat.Row, held *cnat.Held) render.Gate {
	switch phase := a.around.Phase; {
	case phase == render.Passed:
		return render.Open
	case want == nil, want.Rank >= rule.OfLoadBalancer && (phase == render.Rendering || held != nil):
		return render.Closed
	}
	return render.Open
}

// objects yields the rows of the agent in VPP.
func (a *adapter) objects(yield func(rule.Key) bool) {
	for k, held := range a.have.Rows {
		if held.Ours && !yield(k) {
			return
		}
	}
}

// summary says how many rows VPP holds.
func (a *adapter) summary() string {
	others := 0
	for k := range a.have.Rows {
		if a.taken(k) != "" {
			others++
		}
	}
	return fmt.Sprintf("%d rows of ours, %d of others", len(a.have.Rows)-others, others)
}
