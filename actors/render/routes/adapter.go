package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	kube "github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Name of the renderer.
const Name = "routes"

// allOfIPv6 is a prefix to which all reasons against refusals apply.
var allOfIPv6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)

// networks is the claimant of the service networks; it is no service.
const networks = ""

// adapter renders refused frontends as routes of the agent's FIB sources.
type adapter struct {
	config      routes.Config
	fixed       bool // the configuration has the service networks
	claims      *render.Claims[netip.Prefix, routes.Claim, routes.Route]
	ground      rule.Ground
	refused     map[string][]*messages.Frontend // that services want to be refused by a route
	have        *routes.State                   // last known; never nil
	unsupported bool                            // this VPP cannot have routes of the agent
	around      render.Surroundings
}

// Config is the configuration of the adapter.
type Config struct {
	// Plan are the settings of the planner.
	Plan routes.Config
	// Networks are the service networks, which are refused as a whole. Empty = the service
	// networks that the cluster reports.
	Networks []netip.Prefix
}

// New returns the renderer.
func New(config Config) render.Renderer[netip.Prefix] {
	a := &adapter{config: config.Plan, fixed: len(config.Networks) > 0, refused: map[string][]*messages.Frontend{}, have: routes.NewState()}
	a.claims = render.NewClaims(render.Rules[netip.Prefix, routes.Claim, routes.Route]{
		Order: netip.Prefix.Compare, Resolve: a.resolve, Same: func(x, y routes.Route) bool { return x == y }, Shared: true,
	})
	a.claims.Set(networks, 0, routes.Networks(config.Networks))
	return render.Renderer[netip.Prefix]{Name: Name, Noun: "routes", Claims: a.claims, Kind: a, Remove: remove}
}

// resolve returns the route that a prefix should have. An external address has none while another
// route leads there.
func (a *adapter) resolve(p netip.Prefix, claims []render.Claim[routes.Claim]) (routes.Route, bool) {
	route, wanted := a.asked(p, claims)
	if _, covered := a.have.Covered[p]; wanted && route.External && covered {
		return routes.Route{}, false
	}
	return route, wanted
}

// asked is the route that services want for a prefix, without regard to other routes.
func (a *adapter) asked(p netip.Prefix, claims []render.Claim[routes.Claim]) (routes.Route, bool) {
	values := make([]routes.Claim, len(claims))
	for i, c := range claims {
		values[i] = c.Value
	}
	route, wanted := routes.Resolve(p, values, a.ground)
	return route.Refusing(a.unable(p)), wanted
}

// unable is why VPP does not refuse all clients of a prefix, so that its route answers with ICMP
// host unreachable instead; "" = it refuses them.
func (a *adapter) unable(p netip.Prefix) string {
	why := cmp.Or(a.have.Unable, a.around.Set.GetUnanswered())
	if p.Addr().Is6() {
		why = cmp.Or(why, a.around.Set.GetUnanswered6())
	}
	return why
}

// refusals are all prefixes, because VPP refuses in another way than before. Services say in which.
func (a *adapter) refusals() []netip.Prefix {
	a.claims.Concern(slices.Collect(maps.Keys(a.refused))...)
	return slices.Collect(a.claims.Keys())
}

// external are the external addresses for which services want a route.
func (a *adapter) external() (found []netip.Prefix) {
	for p := range a.claims.Keys() {
		if route, wanted := a.asked(p, a.claims.At(p)); wanted && route.External {
			found = append(found, p)
		}
	}
	return found
}

func (a *adapter) Plan(service string, view *messages.ServiceView) {
	wishes := map[netip.Prefix]routes.Claim{}
	delete(a.refused, service)
	if view != nil {
		plan := routes.Plan(view, a.config)
		for _, claim := range plan.Claims {
			wishes[claim.Prefix()] = claim
		}
		if len(plan.Refused) > 0 {
			a.refused[service] = plan.Refused
		}
	}
	a.claims.Set(service, view.GetCreated(), wishes)
}

// Settle satisfies render.Kind: service networks get a route, addresses of hosts never do.
// Interfaces decide whether VPP refuses.
func (a *adapter) Settle(s render.Surroundings) {
	before := a.around
	var changed []netip.Prefix
	if s.Set.GetUnanswered() != before.Set.GetUnanswered() || s.Set.GetUnanswered6() != before.Set.GetUnanswered6() {
		changed = a.refusals()
	}
	a.claims.Change(changed, func() { a.around = s })
	if s.Begin == nil || s.Set == nil || s.Begin == before.Begin && s.Set == before.Set {
		return
	}
	if !a.fixed {
		a.claims.Set(networks, 0, routes.Networks(rule.Networks(s.Begin.GetServiceCidrs())))
	}
	if ground := rule.NewGround(s.Begin, s.Set, nil); !ground.Equal(a.ground) {
		a.claims.Change(slices.Collect(a.claims.Keys()), func() { a.ground = ground })
	}
}

// Forget satisfies render.Kind. For the same VPP the state is kept: it has the routes beneath
// better routes of other clients.
func (a *adapter) Forget(restarted bool) {
	if restarted {
		a.have, a.unsupported = routes.NewState(), false
	}
}

func (a *adapter) Reader(bool) func(context.Context, link.Caller) (any, error) {
	prefixes, external := a.have.Prefixes(a.claims.All()), a.external()
	return func(ctx context.Context, vpp link.Caller) (any, error) {
		state, err := routes.Read(ctx, vpp, prefixes, external)
		if errors.Is(err, routes.ErrUnsupported) {
			return (*routes.State)(nil), nil
		}
		return state, err
	}
}

func (a *adapter) Adopt(read any, known bool) (drifted []netip.Prefix, settings int) {
	state := read.(*routes.State) //nolint:forcetypeassert // Reader made it
	if a.unsupported = state == nil; a.unsupported {
		a.have = routes.NewState()
		return nil, 0
	}
	before := a.have
	state.Inherit(before)
	changed := a.external()
	if state.Unable != before.Unable {
		changed = a.refusals()
	}
	a.claims.Change(changed, func() { a.have = state })
	if known {
		same := func(x, y routes.Kind) bool { return x == y }
		for _, place := range render.Drifted(before.Routes, state.Routes, same) {
			drifted = append(drifted, place.Prefix)
		}
	}
	return drifted, 0
}

func (a *adapter) Next(p netip.Prefix) (s render.Step) {
	have, want := a.have.Only(p), a.wanted(p)
	if s.Wanted = len(want) > 0; s.Wanted {
		s.Bytes = heap.Route().Row
	}
	if len(have.Routes) > 0 {
		s.Held = heap.Route().Row
	}
	if !a.unsupported {
		ops := routes.Diff(have, want, true)
		s.Cost, s.Ops, s.Gate = len(ops), render.Boxed(ops), a.gate(p, s.Wanted, s.Held > 0)
	}
	return s
}

// wanted are the routes that VPP should hold for these prefixes.
func (a *adapter) wanted(prefixes ...netip.Prefix) routes.Want {
	want := make(routes.Want, len(prefixes))
	for _, p := range prefixes {
		if route, found := a.claims.Desired(p); found {
			want[p] = route
		}
	}
	return want
}

func (a *adapter) State() render.State[netip.Prefix] {
	s := render.State[netip.Prefix]{
		Settings: true,
		Held: func(yield func(netip.Prefix) bool) {
			for place := range a.have.Routes {
				if !yield(place.Prefix) {
					return
				}
			}
		},
		Summary: func() string {
			text := fmt.Sprintf("%d routes of ours, %d beneath those of others", len(a.have.Routes), len(a.have.Beneath))
			if why := a.unable(allOfIPv6); why != "" {
				text += ", host unreachable in place of refused: " + why
			}
			return text
		},
	}
	if a.unsupported {
		s.Warning = routes.ErrUnsupported.Error() + ": nothing is refused"
	}
	return s
}

// gate says when a route may be changed. Before the barrier, a route is added only if VPP holds no
// route of the agent there and only one service can claim the address. The list must come from the
// source: the local mirror may miss endpoints, so its services get rows, which serve, and no
// routes, which refuse.
func (a *adapter) gate(p netip.Prefix, wanted, held bool) render.Gate {
	switch {
	case a.around.Phase == render.Passed:
		return render.Open
	case !wanted || held:
		return render.Closed
	case a.around.Begin.GetProvisional() && len(a.claims.Services(p)) > 0, a.contested(p):
		return render.Closed
	}
	return render.Open
}

// contested reports whether a service that has not rendered may want another route for a prefix.
// Several services may have an external address, but not a cluster IP or a service network.
func (a *adapter) contested(p netip.Prefix) bool {
	return slices.ContainsFunc(a.claims.At(p), func(c render.Claim[routes.Claim]) bool { return c.Value.External })
}

// Work satisfies render.Kind. The source is registered once.
func (a *adapter) Work(steps []render.Chosen[netip.Prefix]) render.Work[netip.Prefix] {
	var ops []routes.Op
	registers := false
	for _, s := range steps {
		for _, op := range render.Unboxed[routes.Op](nil, s.Ops) {
			if op.Verb != routes.Register || !registers {
				ops = append(ops, op)
			}
			registers = registers || op.Verb == routes.Register
		}
	}
	return render.Batch(ops, routes.Apply, func(op routes.Op) (netip.Prefix, bool) { return op.Prefix, op.Verb == routes.Register })
}

// Record satisfies render.Kind. A VPP that cannot have routes of the agent, or another route to an
// address, is no failure of a single route.
func (a *adapter) Record(results []render.Result[netip.Prefix]) {
	for i := range results {
		r := &results[i]
		op, _ := r.Op.(routes.Op)
		switch {
		case errors.Is(r.Err, routes.ErrUnsupported):
			a.unsupported, r.Err = true, nil
		case errors.Is(r.Err, routes.ErrCovered):
			a.have.Covered[op.Prefix], r.Err = op.By, nil
			a.claims.Concern(a.claims.Services(op.Prefix)...)
		case r.Err == nil:
			a.have.Record(op)
		}
	}
}

// Acknowledge satisfies render.Kind: it reports what VPP should refuse and does not, or not as
// Kubernetes asks.
func (a *adapter) Acknowledge(ack *messages.RenderAck, service string, _ bool) {
	say := func(frontend, wanted, rendered, why string) {
		ack.Approximations = append(ack.Approximations, &messages.Approximation{Service: service, Frontend: frontend, Wanted: wanted, Rendered: rendered, Why: why})
	}
	if a.unsupported {
		for _, p := range a.claims.Objects(service) {
			if route, wanted := a.asked(p, a.claims.At(p)); wanted {
				say(p.Addr().String(), route.Kind.String(), rule.NoRow, routes.ErrUnsupported.Error())
			}
		}
		return
	}
	for _, f := range a.refused[service] {
		if rendered, why := a.refuses(f); why != "" {
			say(kube.FrontendText(f), rule.Refused, rendered, why)
		}
	}
}

// refuses says what becomes of the packets of a frontend that is to be refused, and why; "" = they
// are refused.
func (a *adapter) refuses(f *messages.Frontend) (rendered, why string) {
	addr, _ := netip.ParseAddr(f.GetAddress())
	p := netip.PrefixFrom(addr, addr.BitLen())
	route, wanted := a.asked(p, a.claims.At(p))
	ports := ""
	if route.External {
		ports = " on every port of the address"
	}
	unreachable := "VPP answers with ICMP host unreachable" + ports + ": TCP clients fail at once, UDP clients only time out"
	by, covered := a.have.Covered[p]
	switch why = a.unable(p); {
	case !wanted || route.Kind == routes.Drop:
		return rule.NoRow, "another service has the address, or a host may have it"
	case route.External && covered:
		return rule.NoRow, fmt.Sprintf("the route %s leads there", by)
	case why == routes.NotRead:
		why = "without its session layer " + unreachable + "; with session { enable } VPP refuses them, except where its tables or listeners prevent it"
	case why != "":
		why += ": " + unreachable
	case route.External:
		return rule.Refused + ports, "one route answers" + ports
	default:
		return "", ""
	}
	return "reject: host unreachable", why
}

// Rows satisfies render.Kind: operators see no routes as rows.
func (*adapter) Rows(string, bool) (wanted, held []*messages.RowState) { return nil, nil }

// Diff satisfies render.Kind. For a VPP that cannot have routes of the agent it is empty; Warning
// says why.
func (a *adapter) Diff(read any, sweep bool) (operations []render.Difference) {
	state := read.(*routes.State) //nolint:forcetypeassert // Reader made it
	if state == nil {
		return nil
	}
	state.Inherit(a.have)
	for _, op := range routes.Diff(state, a.claims.All(), sweep) {
		object := ""
		if op.Prefix.IsValid() { // the source is registered for all
			object = op.Prefix.String()
		}
		operations = append(operations, render.Difference{Object: object, Text: op.Describe()})
	}
	return operations
}

// remove removes the agent's routes. Their sources cannot be removed; the next start uses them
// again.
// A dry run does not see a route beneath another route of the agent.
func remove(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	for { // VPP shows a route only after the one above it has been removed
		state, err := routes.Read(ctx, vpp, nil, nil)
		if errors.Is(err, routes.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		ops := routes.Diff(state, nil, true)
		err = render.CarryOut(ctx, vpp, r, ops, routes.Apply)
		if len(ops) == 0 || err != nil || r.DryRun {
			return err
		}
	}
}
