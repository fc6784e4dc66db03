package look

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// explanation is the state of one service and of its frontends, with reasons.
type explanation struct {
	Service string           `json:"service"`
	Served  api.Served       `json:"served"`
	State   api.ServiceState `json:"state"`
	// Because are the reasons for the state, and all errors of the input.
	Because   []string            `json:"because"`
	Frontends []explainedFrontend `json:"frontends"`
	// Lost are the endpoints to which connections are lost, Unused the endpoints that are not
	// used everywhere, with the reasons.
	Lost   []api.EndpointUse `json:"lost,omitempty"`
	Unused []api.EndpointUse `json:"unused"`
	// Draining are the endpoints that keep their connections and get no new ones.
	Draining []api.DrainingEndpoint `json:"draining"`
	reading
	// InVPP are the rows in VPP as the agent remembers them.
	InVPP []api.Row `json:"rows"`
	// Actor is the actor of the service.
	Actor *api.Actor `json:"actor"`
	// Events are the latest events of the service, the newest first.
	Events []api.Event `json:"events"`
}

// explainedFrontend is a frontend with its state in VPP.
type explainedFrontend struct {
	Frontend string `json:"frontend" column:"FRONTEND"`
	Kind     string `json:"kind" column:"KIND"`
	From     string `json:"from" column:"FROM"`
	Action   string `json:"action" column:"ACTION"`
	// Endpoints are the endpoints for new connections.
	Endpoints []string `json:"endpoints" column:"ENDPOINTS"`
	// InVPP is the standing of its row (api.Standing).
	InVPP string `json:"inVPP" column:"IN VPP"`
	// Why are further reasons.
	Why []string `json:"why"`
}

// newExplainCommand returns `troupe explain`: from state, rows, actor and journal, the reasons why
// a service does not work.
func newExplainCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain NAMESPACE/NAME | --packet SOURCE DESTINATION:PORT/PROTOCOL", Short: "Explain the state of a service, or the way of a packet",
		Long: `Explain the state of each frontend of a service: the request of Kubernetes, the row
in VPP, and the reason for a difference.

With --packet explain the first packet of a connection: the frontend that decides, and why other
frontends do not; the endpoints with their shares; the row in VPP now.`,
		Example: "  troupe explain shop/web\n  troupe explain --packet 10.1.1.3 10.96.0.10:80/TCP",
		Args:    cobra.RangeArgs(1, 2), ValidArgsFunction: CompleteServices,
	}
	l := New(cmd)
	isPacket := cmd.Flags().Bool("packet", false, "explain a packet from an address to an address, a port and a protocol")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case *isPacket && len(args) != 2:
			return cli.Usagef("expected --packet SOURCE DESTINATION:PORT/PROTOCOL")
		case *isPacket:
			return l.Show(cmd, std, func(ctx context.Context, c *cli.Client) (*answer, error) {
				e := &explainedPacket{Packet: new(api.Packet)}
				err := c.Get(ctx, "packet", url.Values{"source": args[:1], "destination": args[1:]}, e.Packet)
				if err == nil {
					e.compare(read(ctx, c, e.Destination))
				}
				return answered(e, err, packetTable)
			})
		case len(args) != 1:
			return cli.Usagef("expected one service NAMESPACE/NAME, or --packet")
		}
		path, err := ServicePath(args[0])
		if err != nil {
			return err
		}
		return l.Show(cmd, std, func(ctx context.Context, c *cli.Client) (*answer, error) {
			e, err := askExplanation(ctx, c, path)
			return &answer{e, func(c *cli.Columns) { explanationTable(c, e) }}, err
		})
	}
	return cmd
}

// askExplanation queries the agent for a service. Its actor may end between two queries.
func askExplanation(ctx context.Context, c *cli.Client, path string) (*explanation, error) {
	var detail api.ServiceDetail
	if err := c.Get(ctx, path, nil, &detail); err != nil {
		return nil, err
	}
	e := explain(&detail)
	e.compare(read(ctx, c, e.frontends()...))
	var actor api.Actor
	if c.Get(ctx, "actors/"+escapePath(address.Service(detail.Key)), nil, &actor) == nil {
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
	e := &explanation{
		Service: s.Key, Served: s.Served, State: s.State, Because: []string{}, Frontends: []explainedFrontend{}, InVPP: s.InVPP,
		Draining: append([]api.DrainingEndpoint{}, s.Draining...),
		Unused:   slices.DeleteFunc(append([]api.EndpointUse{}, s.Uses...), func(u api.EndpointUse) bool { return u.Why == "" }),
	}
	e.Lost = slices.DeleteFunc(slices.Clone(s.Uses), func(u api.EndpointUse) bool { return u.Fault == "" })
	for _, reason := range []string{s.NotServed, s.Error} {
		if reason != "" {
			e.Because = append(e.Because, reason)
		}
	}
	for _, p := range s.Problems {
		if s.Error == "" || !strings.Contains(p.String(), s.Error) {
			e.Because = append(e.Because, p.String())
		}
	}
	wanted, held := byVIP(s.Rendered), byVIP(s.InVPP)
	for _, f := range s.Wanted {
		e.Frontends = append(e.Frontends, explainedFrontend{
			Frontend: f.Frontend, Kind: f.Kind, From: f.From, Action: f.Action, Endpoints: f.Endpoints,
			InVPP: api.Standing(wanted[f.Frontend], held[f.Frontend], ownerOf(s, f.Frontend) != ""), Why: why(s, &f),
		})
	}
	return e
}

// frontends are the addresses of the service.
func (e *explanation) frontends() []string {
	out := make([]string, len(e.Frontends))
	for i := range e.Frontends {
		out[i] = e.Frontends[i].Frontend
	}
	return out
}

// compare takes a reading of VPP.
func (e *explanation) compare(r reading) {
	e.reading = r
	for i := range e.Frontends {
		e.Frontends[i].InVPP = r.standing(e.Frontends[i].Frontend, e.Frontends[i].InVPP)
	}
}

// byVIP returns rows by their address.
func byVIP(rows []api.Row) map[string]*api.Row {
	out := map[string]*api.Row{}
	for i := range rows {
		out[rows[i].VIP] = &rows[i]
	}
	return out
}

// ownerOf is the other owner of an address of the service; "" = the service has it.
func ownerOf(s *api.ServiceDetail, frontend string) string {
	for _, c := range s.Conflicts {
		if c.Frontend == frontend {
			return c.Owner
		}
	}
	return ""
}

// why returns the reasons for the state of a frontend, each once.
func why(s *api.ServiceDetail, f *api.Frontend) []string {
	reasons := []string{}
	if owner := ownerOf(s, f.Frontend); owner != "" {
		reasons = append(reasons, owner+" has this address")
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
			if text := fmt.Sprintf("wanted %s, rendered %s: %s", a.Wanted, a.Rendered, a.Why); !slices.Contains(reasons, text) {
				reasons = append(reasons, text)
			}
		}
	}
	return reasons
}

// explanationTable prints an explanation.
func explanationTable(c *cli.Columns, e *explanation) {
	c.Details("Service:", e.Service, "Served:", fmt.Sprintf("%s: %s", e.Served, e.Served.Why()), "State:", e.State)
	for _, reason := range e.Because {
		c.Row("Because:", reason)
	}
	if e.Actor != nil {
		c.Details("Actor:", fmt.Sprintf("%s, %s, incarnation %d, %d messages pending", e.Actor.Path, e.Actor.State, e.Actor.Incarnation, e.Actor.Pending),
			"Last failure:", e.Actor.LastFailure)
	}
	e.table(c)
	c.Table("Frontends", e.Frontends)
	e.reasons(c)
	for i, u := range e.Lost {
		if i == 0 {
			c.Section("Endpoints that connections do not reach")
		}
		c.Row(strings.TrimSpace(u.Address+" "+u.Pod), u.Fault)
	}
	e.unused(c)
	for i, d := range e.Draining {
		if i == 0 {
			c.Section("Draining endpoints")
		}
		c.Row(d.Address, d.State())
	}
	e.repairs(c)
	if len(e.InVPP) > 0 && len(e.Differences) == 0 {
		c.Section("In VPP")
		RowsTable(c, e.InVPP)
	}
	if len(e.Events) > 0 {
		c.Section("Latest events")
		eventsTable(c, e.Events)
	}
}

// reasons prints each reason once, with the frontends to which it applies.
func (e *explanation) reasons(c *cli.Columns) {
	var order []string
	holds := map[string][]string{}
	for _, f := range e.Frontends {
		for _, reason := range f.Why {
			if holds[reason] == nil {
				order = append(order, reason)
			}
			holds[reason] = append(holds[reason], f.Frontend)
		}
	}
	if len(order) > 0 {
		c.Section("Why")
	}
	for _, reason := range order {
		who := strings.Join(slices.Compact(holds[reason]), ", ")
		if n := len(holds[reason]); n > 1 && n == len(e.Frontends) {
			who = "every frontend"
		}
		c.Row(who, reason)
	}
}

// unused prints each reason for unused endpoints once, with some of the endpoints.
func (e *explanation) unused(c *cli.Columns) {
	const most = 3
	byReason := map[string][]string{}
	for _, u := range e.Unused {
		byReason[u.Why] = append(byReason[u.Why], strings.TrimSpace(u.Address+" "+u.Pod))
	}
	for i, why := range slices.Sorted(maps.Keys(byReason)) {
		if i == 0 {
			c.Section("Endpoints that are not used everywhere")
			c.Row("ENDPOINTS", "WHY")
		}
		named := byReason[why]
		text := strings.Join(named[:min(len(named), most)], ", ")
		if len(named) > most {
			text += fmt.Sprintf(" and %d more", len(named)-most)
		}
		c.Row(text, why)
	}
}

// explainedPacket is a packet with a reading of VPP.
type explainedPacket struct {
	*api.Packet
	reading
}

// compare takes a reading of VPP. The shares in VPP are not known where it differs.
func (p *explainedPacket) compare(r reading) {
	p.reading = r
	p.VPP = r.standing(p.Destination, p.VPP)
	if len(r.Differences) > 0 {
		p.InVPP = []api.Row{}
		for i := range p.Backends {
			p.Backends[i].ShareInVPP = 0
		}
	}
}

// packetTable prints what happens to a packet.
func packetTable(c *cli.Columns, p *explainedPacket) {
	c.Details("Packet:", p.Source+" -> "+p.Destination, "Client:", p.Class, "Action:", p.Action)
	if f := p.Frontend; f != nil {
		port := ""
		if f.Port != "" {
			port = ", port " + f.Port
		}
		c.Row("Frontend:", fmt.Sprintf("%s of %s%s, for clients: %s", f.Kind, p.Service, port, f.From))
	}
	for _, reason := range p.Because {
		c.Row("Because:", reason)
	}
	vpp := p.VPP
	if vpp == api.NoRow && p.Action == "none" {
		vpp = "no row, and none is needed"
	}
	c.Row("Row in VPP:", vpp)
	p.table(c)
	p.repairs(c)
	if len(p.Backends) > 0 {
		c.Section("Destination becomes one of")
		c.Row("ENDPOINT", "SHARE", "SHARE IN VPP", "SOURCE")
	}
	for _, b := range p.Backends {
		source := "kept"
		if b.SourceReplaced {
			source = "an address of this node"
		}
		inVPP := percent(b.ShareInVPP)
		if len(p.Differences) > 0 {
			inVPP = "unknown"
		}
		cells := []any{b.Address, percent(b.Share), inVPP, source}
		if b.Fault != "" {
			cells = append(cells, b.Fault)
		}
		c.Row(cells...)
	}
	if len(p.InVPP) > 0 {
		c.Section("In VPP")
		RowsTable(c, p.InVPP)
	}
	c.Table("Frontends that do not decide", p.Others)
	c.Table("Approximations", p.Approximations)
}

// percent formats a share.
func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
