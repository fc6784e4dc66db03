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

// explanation is the state of one service and of its frontends, with reasons.
type explanation struct {
	Service string           `json:"service"`
	State   api.ServiceState `json:"state"`
	// Because are the reasons for the state, and all errors of the input.
	Because   []string            `json:"because"`
	Frontends []explainedFrontend `json:"frontends"`
	// Actor is the actor of the service.
	Actor *api.Actor `json:"actor"`
	// Events are the latest of the service, the newest first.
	Events []api.Event `json:"events"`
}

// explainedFrontend is a frontend with its state in VPP.
type explainedFrontend struct {
	Frontend string `json:"frontend"`
	Kind     string `json:"kind"`
	From     string `json:"from"`
	Action   string `json:"action"`
	// Endpoints are those for new connections.
	Endpoints []string `json:"endpoints"`
	// InVPP is the state of its row: as wanted, missing, other than wanted, left over, no row, or owned by another.
	InVPP string `json:"inVPP"`
	// Why are further reasons; "" = none.
	Why string `json:"why,omitempty"`
}

// newExplainCommand returns `troupe explain`: one answer to the question why a service does not work, from state, rows, actor and journal.
func newExplainCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain NAMESPACE/NAME",
		Short: "Explain the state of each frontend of a service",
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

// askExplanation queries the agent for a service. Its actor may end between two queries.
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

// explain compares each frontend with its rows.
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

// byVIP returns rows by their address.
func byVIP(rows []show.Row) map[string]*show.Row {
	out := map[string]*show.Row{}
	for i := range rows {
		out[rows[i].VIP] = &rows[i]
	}
	return out
}

// taken reports whether another owner has an address of the service.
func taken(s *api.ServiceDetail, frontend string) bool {
	return slices.ContainsFunc(s.Conflicts, func(c api.Conflict) bool { return c.Frontend == frontend })
}

// standing compares the desired row of a frontend with the row in VPP; taken is true if another owner has the address.
func standing(wanted, held *show.Row, taken bool) string {
	switch {
	case held == nil && taken:
		return "owned by another"
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

// why returns the reasons for the state of a frontend.
func why(s *api.ServiceDetail, f *show.Frontend) string {
	var reasons []string
	for _, c := range s.Conflicts {
		if c.Frontend == f.Frontend {
			reasons = append(reasons, c.Owner+" has this address")
		}
	}
	switch f.Action {
	case "reject":
		reasons = append(reasons, "no endpoint is ready: VPP rejects clients")
	case "drop":
		reasons = append(reasons, "no endpoint on this node: VPP drops packets")
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

// notEmpty returns the parts that are not empty.
func notEmpty(texts ...string) []string {
	var out []string
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// explanationTable prints an explanation.
func explanationTable(c *columns, e *explanation) {
	c.row("Service:", e.Service)
	c.row("State:", e.State)
	for _, reason := range e.Because {
		c.row("Because:", reason)
	}
	if e.Actor != nil {
		c.row("Actor:", fmt.Sprintf("%s, %s, incarnation %d, %d messages pending", e.Actor.Path, e.Actor.State, e.Actor.Incarnation, e.Actor.Pending))
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
