package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
)

func (b backend) Services(ctx context.Context) ([]api.Service, error) {
	page, err := ask[*status.ServicesPage](ctx, b.agent.system, address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return nil, err
	}
	return b.summaries(page), nil
}

// summaries summarises each service.
func (b backend) summaries(page *status.ServicesPage) []api.Service {
	lost, faults := b.lostVPP(), b.faults(page)
	out := make([]api.Service, len(page.Services))
	for i, s := range page.Services {
		out[i] = b.service(s, lost, faults)
		faulty(&out[i], s.GetView(), page.Faulty)
	}
	return out
}

// lostVPP is the reason why the state of VPP is unknown; "" = it is known.
func (b backend) lostVPP() string {
	for _, p := range b.agent.readiness.Load().Parts {
		if p.Name == "link" && !p.OK {
			return "VPP is not connected: " + p.Reason
		}
	}
	return ""
}

func (b backend) Service(ctx context.Context, key string) (*api.ServiceDetail, error) {
	page, err := ask[*status.ServicesPage](ctx, b.agent.system, address.Introspect, &status.ServicesQuery{Key: key})
	if err != nil {
		return nil, err
	}
	if len(page.Services) == 0 {
		return nil, fmt.Errorf("service %s: %w", key, api.ErrNotFound)
	}
	wanted, held, err := b.rows(ctx, key)
	if err != nil {
		return nil, err
	}
	s, faults := page.Services[0], b.faults(page)
	detail := &api.ServiceDetail{
		Service: b.service(s, b.lostVPP(), faults), NotServed: s.GetView().GetNotServed(), Wanted: api.Frontends(s.GetView()),
		HealthChecks: api.HealthChecks(s.GetView()), Rendered: api.Rows(key, wanted), InVPP: api.Rows(key, serving(held)), Read: page.Read, Draining: draining(held),
		Approximations: []api.FrontendApproximation{}, Conflicts: []api.Conflict{}, Problems: api.Problems(s.GetErrors()), Uses: uses(s, faults),
	}
	faulty(&detail.Service, s.GetView(), page.Faulty)
	if object := s.GetSpec().GetInput().GetService(); object != nil {
		if detail.Kubernetes, err = protojson.Marshal(object); err != nil {
			return nil, fmt.Errorf("encode service %s: %w", key, err)
		}
	}
	for _, r := range s.GetRenders() {
		detail.Approximations = append(detail.Approximations, api.Approximations(r.GetApproximations())...)
		detail.Approximations = append(detail.Approximations, api.Unrendered(detail.Wanted, r.GetUnrendered())...)
		for _, c := range r.GetConflicts() {
			detail.Conflicts = append(detail.Conflicts, api.Conflict{Frontend: c.GetFrontend(), Owner: c.GetOwner()})
		}
	}
	return detail, nil
}

// serving leaves out rows that VPP keeps only for the connections of draining endpoints.
func serving(held []*messages.RowState) []*messages.RowState {
	return slices.DeleteFunc(slices.Clone(held), func(r *messages.RowState) bool { return len(r.GetLocals()) == 0 && len(r.GetDraining()) > 0 })
}

// draining joins the endpoints that drain in the rows of a service.
func draining(held []*messages.RowState) []api.DrainingEndpoint {
	found := map[string]*api.DrainingEndpoint{}
	for _, r := range held {
		for _, d := range r.GetDraining() {
			one := found[d.GetAddress()]
			if one == nil {
				one = &api.DrainingEndpoint{Address: d.GetAddress()}
				found[d.GetAddress()] = one
			}
			if since := time.Unix(0, d.GetSince()); d.GetSince() != 0 && (one.Since.IsZero() || since.Before(one.Since)) {
				one.Since = since
			}
			if d.Connections != nil {
				n := int(d.GetConnections())
				if one.Connections != nil {
					n += *one.Connections
				}
				one.Connections = &n
			}
			one.Kept = cmp.Or(one.Kept, d.GetKept())
		}
	}
	out := make([]api.DrainingEndpoint, 0, len(found))
	for _, address := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[address])
	}
	return out
}

// uses are the endpoints of a service. Endpoints with a fault come first, then endpoints that are
// not used everywhere.
func uses(s *messages.ServiceStatus, faults faults) []api.EndpointUse {
	out := []api.EndpointUse{}
	for _, u := range service.Uses(s.GetSpec().GetInput(), s.GetSpec().GetNode(), s.GetView()) {
		e := u.Endpoint
		out = append(out, api.EndpointUse{
			Slice: u.Slice.GetName(), Address: e.GetAddress(), Node: e.GetNode(), Pod: e.GetPod(), Ready: e.GetReady(), Serving: e.GetServing(),
			Terminating: e.GetTerminating(), Frontends: u.Frontends, Forwards: u.Forwards, Why: u.Why,
		})
		if u.Forwards > 0 {
			out[len(out)-1].Fault = faults[e.GetAddress()]
		}
	}
	slices.SortStableFunc(out, func(a, b api.EndpointUse) int {
		return cmp.Or(cmp.Compare(min(1, len(b.Fault)), min(1, len(a.Fault))), cmp.Compare(min(1, len(b.Why)), min(1, len(a.Why))))
	})
	return out[:min(len(out), api.MaxLimit)]
}

// rows returns the rows that the renderers want for a service, and its rows in VPP.
func (b backend) rows(ctx context.Context, key string) (wanted, held []*messages.RowState, _ error) {
	for _, renderer := range b.agent.renderers() {
		page, err := ask[*render.RowsPage](ctx, b.agent.system, address.Renderer(renderer), &render.RowsQuery{Service: key})
		if err != nil {
			return nil, nil, err
		}
		wanted, held = append(wanted, page.Wanted...), append(held, page.Held...)
	}
	return wanted, held, nil
}

// service summarises a service. While VPP is disconnected, the acknowledgements of the renderers do
// not count.
func (b backend) service(s *messages.ServiceStatus, lost string, faults faults) api.Service {
	out := api.Service{
		Key: s.GetKey(), State: b.stateOf(s), Generation: s.GetGeneration(), Frontends: len(s.GetView().GetFrontends()),
		Endpoints: endpoints(s.GetView()), Changed: time.Unix(0, s.GetChanged()),
	}
	if addresses := s.GetSpec().GetInput().GetService().GetClusterIps(); len(addresses) > 0 {
		out.ClusterIP = addresses[0]
	}
	for _, r := range s.GetRenders() {
		for _, row := range r.GetRows() {
			if row.GetInSync() {
				out.Rows++
			}
		}
		if out.Error == "" {
			out.Error = r.GetError()
		}
		if conflicts := r.GetConflicts(); out.Error == "" && len(conflicts) > 0 {
			out.Error = fmt.Sprintf("%s is in use by %s", conflicts[0].GetFrontend(), conflicts[0].GetOwner())
		}
	}
	if why := s.GetView().GetRefused(); why != "" {
		out.Error = "not served: " + why
	}
	if errs := s.GetErrors(); out.Error == "" && len(errs) > 0 {
		problem := api.Problems(errs[:1])[0]
		problem.Source = "" // an agent has one source
		out.Error = problem.String()
	}
	if out.Error == "" {
		out.Error = faults.of(s.GetView())
	}
	if out.Error == "" {
		out.Error = b.agent.unserved(s.GetKey())
	}
	out.Served = served(s, out.State)
	if out.Served == api.ServedAll {
		out.Served = faults.served(s.GetView())
	}
	if lost != "" && out.State != api.ServiceNotServed {
		out.State, out.Served, out.Rows, out.Error = api.ServicePending, api.ServedWaiting, 0, lost
	}
	if actor, ok := b.agent.system.Actor(address.Service(s.GetKey())); ok && actor.State == runtime.StateQuarantined {
		out.State, out.Error = api.ServiceQuarantined, actor.LastFailure
	}
	return out
}

// stateOf is the worst state of the renderers.
func (b backend) stateOf(s *messages.ServiceStatus) api.ServiceState {
	switch {
	case s.GetView().GetNotServed() != "":
		return api.ServiceNotServed
	case s.GetView().GetRefused() != "":
		return api.ServiceFailed
	}
	state := api.ServiceInSync
	if len(s.GetRenders()) < len(b.agent.renderers()) {
		// a renderer has not acknowledged this generation
		state = api.ServicePending
	}
	for _, r := range s.GetRenders() {
		switch r.GetState() {
		case messages.RenderState_RENDER_FAILED:
			return api.ServiceFailed
		case messages.RenderState_RENDER_PENDING:
			state = api.ServicePending
		}
	}
	if state != api.ServiceInSync {
		return state
	}
	names, lacking, particular := unserved(s), 0, false
	for _, f := range s.GetView().GetFrontends() {
		if why, is := names[service.FrontendText(f)]; is {
			lacking, particular = lacking+1, particular || why
		}
	}
	switch {
	case lacking > 0 && lacking == len(s.GetView().GetFrontends()):
		return api.ServiceNotServed
	case particular:
		return api.ServicePartly
	}
	return state
}

// unserved are the frontends of a service that no renderer serves. The value is true if a frontend
// is missing for another reason than its address family, which is a setting of the agent. Its time
// is linear, because a service may have thousands of frontends.
func unserved(s *messages.ServiceStatus) map[string]bool {
	names := map[string]bool{}
	for _, r := range s.GetRenders() {
		for _, e := range r.GetUnrendered() {
			text, is := strings.CutPrefix(e.GetMessage(), "frontend ")
			if name, _, cut := strings.Cut(text, " is "); is && cut && e.GetSource() != acl.Renderer {
				names[name] = names[name] || e.GetGeneral() == ""
			}
		}
		for _, a := range r.GetApproximations() {
			if a.GetRendered() == acl.NoRow {
				names[a.GetFrontend()] = true
			}
		}
	}
	return names
}

// endpoints counts the distinct endpoints of a view.
func endpoints(view *messages.ServiceView) int {
	type endpoint struct {
		address string
		port    uint32
	}
	seen := map[endpoint]struct{}{}
	for _, f := range view.GetFrontends() {
		for _, b := range f.GetBackends() {
			seen[endpoint{b.GetAddress(), b.GetPort()}] = struct{}{}
		}
	}
	return len(seen)
}

// faulty makes a service failed that has endpoints in the network of an interface with a fault: VPP
// holds its rows, and answers of these endpoints do not come back.
func faulty(out *api.Service, view *messages.ServiceView, interfaces []*messages.Interface) {
	for _, i := range interfaces {
		behind := endpointsWithin(service.Networks(i.GetAddresses()), view)
		if (out.State == api.ServiceInSync || out.State == api.ServicePartly) && len(behind) > 0 {
			out.State, out.Served, out.Error = api.ServiceFailed, api.ServedPartly, "endpoints behind "+i.GetName()+": "+i.GetFault()
		}
	}
}

// faults are the reasons why connections to endpoints are lost although VPP holds every row, by the
// address of the endpoint.
type faults map[string]string

// faults returns the known faults of endpoints.
func (b backend) faults(page *status.ServicesPage) faults {
	out := faults{}
	for _, s := range b.agent.metrics.Silent() {
		if s.Endpoint.IsValid() {
			out[s.Endpoint.Addr().String()] = s.String() + " got no answer"
		}
	}
	for _, address := range page.Unplaced {
		out[address] = "VPP has no interface or route for it: connections to it are lost"
	}
	networks := service.Networks(b.agent.cfg.Services.ServiceCIDRs)
	if len(networks) == 0 {
		networks = service.Networks(page.ServiceCIDRs)
	}
	for _, s := range page.Services {
		for _, address := range endpointsWithin(networks, s.GetView()) {
			out[address] = "it is in the service CIDRs, and VPP translates a packet once: connections to it are refused"
		}
	}
	return out
}

// endpointsWithin returns the endpoints of a view in these networks.
func endpointsWithin(networks []netip.Prefix, view *messages.ServiceView) (addresses []string) {
	for _, f := range view.GetFrontends() {
		for _, b := range f.GetBackends() {
			a, err := netip.ParseAddr(b.GetAddress())
			if err == nil && slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) }) {
				addresses = append(addresses, b.GetAddress())
			}
		}
	}
	return addresses
}

// of describes the faults of the endpoints of a service in one line; "" = there is none.
func (f faults) of(view *messages.ServiceView) string {
	lost, all := f.lost(view)
	if len(lost) == 0 {
		return ""
	}
	const most = 3
	more := ""
	if len(lost) > most {
		more = fmt.Sprintf(" and %d more", len(lost)-most)
	}
	return fmt.Sprintf("%d of %d endpoints: %s%s: %s", len(lost), all, strings.Join(lost[:min(len(lost), most)], ", "), more, f[lost[0]])
}

// served says what users of a service get whose frontends are all in VPP.
func (f faults) served(view *messages.ServiceView) api.Served {
	switch lost, all := f.lost(view); len(lost) {
	case 0:
		return api.ServedAll
	case all:
		return api.ServedNone
	default:
		return api.ServedPartly
	}
}

// lost are the endpoints of a service with a fault, ordered; all counts its endpoints.
func (f faults) lost(view *messages.ServiceView) (lost []string, all int) {
	if len(f) == 0 {
		return nil, 0
	}
	seen := map[string]bool{}
	for _, frontend := range view.GetFrontends() {
		for _, b := range frontend.GetBackends() {
			if !seen[b.GetAddress()] && f[b.GetAddress()] != "" {
				lost = append(lost, b.GetAddress())
			}
			seen[b.GetAddress()] = true
		}
	}
	slices.Sort(lost)
	return lost, len(seen)
}

// approximations counts the services for each general reason of a renderer why a row is not exact,
// or missing.
func approximations(services []*messages.ServiceStatus) []api.Approximation {
	type reason struct{ renderer, why string }
	found := map[reason]*api.Approximation{}
	for _, s := range services {
		counted := map[reason]bool{}
		count := func(renderer, wanted, rendered, why string) {
			r := reason{renderer, why}
			if counted[r] {
				return
			}
			counted[r] = true
			if found[r] == nil {
				found[r] = &api.Approximation{Renderer: renderer, Wanted: wanted, Rendered: rendered, Why: why}
			}
			found[r].Services++
		}
		for _, ack := range s.GetRenders() {
			for _, a := range ack.GetApproximations() {
				if !a.GetParticular() {
					count(ack.GetRenderer(), a.GetWanted(), a.GetRendered(), a.GetWhy())
				}
			}
			for _, e := range ack.GetUnrendered() {
				if e.GetGeneral() != "" {
					count(ack.GetRenderer(), "served", "not served", e.GetGeneral())
				}
			}
		}
	}
	all := make([]api.Approximation, 0, len(found))
	for _, a := range found {
		all = append(all, *a)
	}
	slices.SortFunc(all, func(a, b api.Approximation) int {
		return cmp.Or(cmp.Compare(a.Renderer, b.Renderer), cmp.Compare(a.Why, b.Why))
	})
	return all
}

// served says what users of a service in this state get. Frontends that drop packets here do not
// count beside others: a traffic policy leaves them to other nodes.
func served(s *messages.ServiceStatus, state api.ServiceState) api.Served {
	held, taken := map[string]bool{}, map[string]bool{}
	for _, r := range s.GetRenders() {
		for _, row := range r.GetRows() {
			held[row.GetVip()] = held[row.GetVip()] || row.GetInSync()
		}
		for _, c := range r.GetConflicts() {
			taken[c.GetFrontend()] = true
		}
	}
	lacking := unserved(s)
	var good, refused, waiting, not int
	for _, f := range s.GetView().GetFrontends() {
		text := service.FrontendText(f)
		particular, lacks := lacking[text]
		switch {
		case lacks && !particular: // its family is left out on purpose
		case lacks || taken[text]:
			not++
		case f.GetAction() == messages.Action_ACTION_DROP:
		case f.GetAction() == messages.Action_ACTION_REJECT && state != api.ServicePending:
			refused++
		case held[text]:
			good++
		case state == api.ServicePending:
			waiting++
		default:
			not++
		}
	}
	switch {
	case good > 0 && refused+waiting+not == 0:
		return api.ServedAll
	case good > 0:
		return api.ServedPartly
	case waiting > 0:
		return api.ServedWaiting
	case refused > 0:
		return api.ServedRefused
	default:
		return api.ServedNone
	}
}
