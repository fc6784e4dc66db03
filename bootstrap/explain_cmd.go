package bootstrap

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/client"
	"github.com/troupe-vpp/troupe/bootstrap/show"
)

// explanation says of one service what becomes of each frontend, and why.
type explanation struct {
	Service string           `json:"service"`
	State   api.ServiceState `json:"state"`
	// Because are reasons for the state, and whatever else keeps the service from being what Kubernetes asks for.
	Because   []string            `json:"because"`
	Frontends []explainedFrontend `json:"frontends"`
	// Actor is who works for it.
	Actor *api.Actor `json:"actor"`
	// Events are the latest about it, the newest first.
	Events []api.Event `json:"events"`
}

// explainedFrontend is a frontend with what came of it.
type explainedFrontend struct {
	Frontend string `json:"frontend"`
	Kind     string `json:"kind"`
	From     string `json:"from"`
	Action   string `json:"action"`
	// Endpoints are those that new connections may reach.
	Endpoints []string `json:"endpoints"`
	// InVPP says what VPP has of it: as wanted, missing, other than wanted, left over, no row, or somebody else's.
	InVPP string `json:"inVPP"`
	// Why it is like that, if there is more to say.
	Why string `json:"why,omitempty"`
}

func newExplainCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain NAMESPACE/NAME",
		Short: "Say of a service what becomes of each of its frontends, and why",
		Args:  cobra.ExactArgs(1),
	}
	l := newLook(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		namespace, name, err := serviceName(args[0])
		if err != nil {
			return err
		}
		e, err := askExplanation(cmd.Context(), l.client(), namespace, name)
		if err != nil {
			return err
		}
		return l.out.print(io.out, e, func(c *columns) { explanationTable(c, e) })
	}
	return cmd
}

// askExplanation collects what is known of a service. Its actor may be gone meanwhile.
func askExplanation(ctx context.Context, c *client.Client, namespace, name string) (*explanation, error) {
	var detail api.ServiceDetail
	if err := c.Get(ctx, "services/"+url.PathEscape(namespace)+"/"+url.PathEscape(name), nil, &detail); err != nil {
		return nil, err
	}
	e := explain(&detail)
	var actor api.Actor
	if c.Get(ctx, "actors/agent/world/services/"+url.PathEscape(namespace+"~"+name), nil, &actor) == nil {
		e.Actor = &actor
	}
	var resync api.Resync
	if err := c.Get(ctx, "resync", nil, &resync); err != nil {
		return nil, err
	}
	for _, r := range resync.Renderers {
		if !r.InSync {
			e.Because = append(e.Because, r.Renderer+" is not in sync: "+r.Reason)
		}
	}
	var events api.EventPage
	if err := c.Get(ctx, "events", url.Values{"object": {detail.Key}, "limit": {"5"}}, &events); err != nil {
		return nil, err
	}
	e.Events = events.Items
	return e, nil
}

// explain finds out what became of each frontend.
func explain(s *api.ServiceDetail) *explanation {
	e := &explanation{Service: s.Key, State: s.State, Because: []string{}, Frontends: []explainedFrontend{}}
	for _, reason := range []string{s.NotServed, s.Error} {
		if reason != "" {
			e.Because = append(e.Because, reason)
		}
	}
	for _, p := range s.Problems {
		text := strings.Join(notEmpty(p.Source, p.Kind+" "+p.Object, p.Field, p.Message), ": ")
		if !strings.Contains(text, s.Error) || s.Error == "" {
			e.Because = append(e.Because, text)
		}
	}
	wanted, held := byVIP(s.Rendered), byVIP(s.InVPP)
	for _, f := range s.Wanted {
		e.Frontends = append(e.Frontends, explainedFrontend{
			Frontend: f.Frontend, Kind: f.Kind, From: f.From, Action: f.Action, Endpoints: f.Endpoints,
			InVPP: standing(wanted[f.Frontend], held[f.Frontend], taken(s, f.Frontend)), Why: why(s, &f),
		})
	}
	return e
}

// byVIP finds rows by their address.
func byVIP(rows []show.Row) map[string]*show.Row {
	out := map[string]*show.Row{}
	for i := range rows {
		out[rows[i].VIP] = &rows[i]
	}
	return out
}

// taken reports whether somebody else has an address that the service wants.
func taken(s *api.ServiceDetail, frontend string) bool {
	return slices.ContainsFunc(s.Conflicts, func(c api.Conflict) bool { return c.Frontend == frontend })
}

// standing compares what VPP should hold with what it holds; taken says that what the service wants is somebody else's.
func standing(wanted, held *show.Row, taken bool) string {
	switch {
	case held == nil && taken:
		return "somebody else's"
	case wanted == nil && held == nil:
		return "no row"
	case wanted == nil:
		return "left over"
	case held == nil:
		return "missing"
	case reflect.DeepEqual(wanted.Locals, held.Locals) && reflect.DeepEqual(wanted.Flags, held.Flags) && wanted.AffinitySeconds == held.AffinitySeconds:
		return "as wanted"
	default:
		return "other than wanted"
	}
}

// why says what else there is to know of a frontend.
func why(s *api.ServiceDetail, f *show.Frontend) string {
	var reasons []string
	for _, c := range s.Conflicts {
		if c.Frontend == f.Frontend {
			reasons = append(reasons, c.Owner+" has this address")
		}
	}
	switch f.Action {
	case "reject":
		reasons = append(reasons, "no endpoint is ready: clients are refused")
	case "drop":
		reasons = append(reasons, "no endpoint of this node may serve it: packets are dropped")
	}
	if len(f.AllowSources) > 0 {
		reasons = append(reasons, "only from "+strings.Join(f.AllowSources, ", "))
	}
	for _, a := range s.Approximations {
		if a.Frontend == f.Frontend {
			reasons = append(reasons, fmt.Sprintf("wanted %s, rendered %s: %s", a.Wanted, a.Rendered, a.Why))
		}
	}
	return strings.Join(reasons, "; ")
}

// notEmpty leaves out what says nothing.
func notEmpty(texts ...string) []string {
	var out []string
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			out = append(out, text)
		}
	}
	return out
}

func explanationTable(c *columns, e *explanation) {
	c.row("Service:", e.Service)
	c.row("State:", e.State)
	for _, reason := range e.Because {
		c.row("Because:", reason)
	}
	if e.Actor != nil {
		c.row("Actor:", fmt.Sprintf("%s, %s, life %d, %d messages wait", e.Actor.Path, e.Actor.State, e.Actor.Incarnation, e.Actor.Pending))
		if e.Actor.LastFailure != "" {
			c.row("Last failure:", e.Actor.LastFailure)
		}
	}
	if len(e.Frontends) > 0 {
		c.section("Frontends")
		c.row("FRONTEND", "KIND", "FROM", "ACTION", "ENDPOINTS", "IN VPP", "WHY")
		for _, f := range e.Frontends {
			c.row(f.Frontend, f.Kind, f.From, f.Action, strings.Join(f.Endpoints, ","), f.InVPP, f.Why)
		}
	}
	if len(e.Events) > 0 {
		c.section("Latest events")
		eventsTable(c, e.Events)
	}
}
