package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/show"
	"github.com/troupe-vpp/troupe/messages"
)

// Services satisfies api.Reader.
func (b backend) Services(ctx context.Context) ([]api.Service, error) {
	page, err := ask[*actors.StatusPage](ctx, b.Agent, actors.PathIntrospect, &actors.StatusQuery{})
	if err != nil {
		return nil, err
	}
	out := make([]api.Service, len(page.Services))
	for i, s := range page.Services {
		out[i] = b.service(s)
	}
	return out, nil
}

// Service satisfies api.Reader.
func (b backend) Service(ctx context.Context, key string) (*api.ServiceDetail, error) {
	page, err := ask[*actors.StatusPage](ctx, b.Agent, actors.PathIntrospect, &actors.StatusQuery{Key: key})
	if err != nil {
		return nil, err
	}
	if len(page.Services) == 0 {
		return nil, fmt.Errorf("service %s: %w", key, api.ErrNotFound)
	}
	rows, err := ask[*actors.RowsPage](ctx, b.Agent, actors.PathRenderer("nat44"), &actors.RowsQuery{Service: key})
	if err != nil {
		return nil, err
	}
	s := page.Services[0]
	detail := &api.ServiceDetail{
		Service: b.service(s), NotServed: s.GetView().GetNotServed(), Wanted: show.Frontends(s.GetView()),
		HealthChecks: show.HealthChecks(s.GetView()), Rendered: show.Rows(key, rows.Wanted), InVPP: show.Rows(key, rows.Held),
		Approximations: []show.Approximation{}, Conflicts: []api.Conflict{}, Problems: show.Problems(s.GetErrors()),
	}
	for _, r := range s.GetRenders() {
		detail.Approximations = append(detail.Approximations, show.Approximations(r.GetApproximations())...)
		for _, c := range r.GetConflicts() {
			detail.Conflicts = append(detail.Conflicts, api.Conflict{Frontend: c.GetFrontend(), Owner: c.GetOwner()})
		}
	}
	return detail, nil
}

// service is one line about a service.
func (b backend) service(s *messages.ServiceStatus) api.Service {
	out := api.Service{
		Key: s.GetKey(), State: stateOf(s), Generation: s.GetGeneration(), Frontends: len(s.GetView().GetFrontends()),
		Endpoints: endpoints(s.GetView()), Changed: time.Unix(0, s.GetChanged()),
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
	if errs := s.GetErrors(); out.Error == "" && len(errs) > 0 {
		out.Error = errs[0].GetField() + ": " + errs[0].GetMessage()
	}
	if actor, ok := b.system.Actor(actors.PathService(s.GetKey())); ok && actor.State == runtime.StateQuarantined {
		out.State, out.Error = api.ServiceQuarantined, actor.LastFailure
	}
	return out
}

// stateOf puts the worst word of the renderers first.
func stateOf(s *messages.ServiceStatus) api.ServiceState {
	if s.GetView().GetNotServed() != "" {
		return api.ServiceNotServed
	}
	state := api.ServiceInSync
	if len(s.GetRenders()) == 0 {
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
	return state
}

// endpoints counts the distinct backends of a view.
func endpoints(view *messages.ServiceView) int {
	seen := map[string]bool{}
	for _, f := range view.GetFrontends() {
		for _, b := range f.GetBackends() {
			seen[fmt.Sprintf("%s %d", b.GetAddress(), b.GetPort())] = true
		}
	}
	return len(seen)
}
