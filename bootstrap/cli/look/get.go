package look

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/client"
)

// newGetServices returns `troupe get services`.
func newGetServices(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "services", Aliases: []string{"svc"}, Short: "List the services of this node", Args: cobra.NoArgs}
	l, query := New(cmd), listFlags(cmd, "namespace", "served", "state")
	cli.CompleteFlag(cmd, "served", api.Texts(api.ServedWords())...)
	cli.CompleteFlag(cmd, "state", api.Texts(api.ServiceStates())...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return l.Show(cmd, std, func(ctx context.Context, c *client.Client) (*answer, error) {
			all, _, err := client.All[api.Service](ctx, c, "services", query(), 0)
			var resync api.Resync
			if err == nil {
				err = c.Get(ctx, "resync", nil, &resync)
			}
			return &answer{all, func(c *cli.Columns) {
				c.Row("SERVICE", "CLUSTER-IP", "SERVED", "STATE", cli.Optional("FRONTENDS"), "ENDPOINTS", cli.Optional("ROWS"), cli.Optional("CHANGED"), "ERROR")
				for _, s := range all {
					c.Row(s.Key, s.ClusterIP, s.Served, s.State, s.Frontends, s.Endpoints, s.Rows, since(s.Changed), s.Error)
				}
				if read := resync.LastRead(); !read.IsZero() {
					c.Section("STATE is from what the agent read from VPP " + since(read) + " and has written since; troupe diff reads VPP now")
				}
			}}, err
		})
	}
	return cmd
}

// serviceSessionsTable prints the sessions of a service.
func serviceSessionsTable(c *cli.Columns, s *api.ServiceSessions) {
	c.Row("PROTOCOL", "CLIENT", "FRONTEND", "BACKEND", "BACKEND SEES", "IDLE", cli.Optional("PACKETS"), cli.Optional("BYTES"), "EXPIRED")
	for _, i := range s.Items {
		c.Row(i.Protocol, i.Client, i.Frontend, i.Backend, cmp.Or(i.ClientAs, i.Client), elapsed(i.IdleSeconds), i.Packets, i.Bytes, i.Expired)
	}
	if s.Incomplete != "" {
		c.Section(s.Incomplete)
	}
}

// newGetInterfaces returns `troupe get interfaces`.
func newGetInterfaces(std cli.Streams) *cobra.Command {
	return newQuery(std, "interfaces", "List the interfaces of VPP with their roles", whole("interfaces", interfacesTable))
}

// interfacesTable prints interfaces.
func interfacesTable(c *cli.Columns, set *api.Interfaces) {
	c.Row("INDEX", "NAME", "KIND", "UP", "FRONTEND", "BACKEND", "ADDRESSES", "PODS")
	for _, i := range set.Items {
		c.Row(i.Index, i.Name, i.Kind, i.Up, i.Frontend, i.Backend, strings.Join(i.Addresses, ","), strings.Join(i.Pods, ","))
	}
	c.Table("Interfaces with packets that are not TCP, UDP or ICMP, which NAT44 leaves alone", "NAME", "WHY")
	for _, i := range set.Items {
		if i.OtherProtocols != "" {
			c.Row(i.Name, i.OtherProtocols)
		}
	}
}

// newGetNodes returns `troupe get nodes`, with the state of this node's claim in its row.
func newGetNodes(std cli.Streams) *cobra.Command {
	return newQuery(std, "nodes", "List the nodes of the cluster with their IDs and addresses", whole("nodes", nodesTable))
}

// nodesTable prints the nodes, and the approximations of this node.
func nodesTable(c *cli.Columns, nodes *api.Nodes) {
	c.Row("NAME", "ID", "VPP ADDRESSES", "MANAGEMENT ADDRESSES", "POD CIDRS")
	for _, n := range nodes.Items {
		name := n.Name
		if name == nodes.Self {
			name += " (this, " + nodes.Claim + ")"
		}
		c.Row(name, n.ID, strings.Join(n.VPPAddresses, ","), strings.Join(n.ManagementAddresses, ","), strings.Join(n.PodCIDRs, ","))
	}
	if nodes.Renderer != "" {
		c.Section("Renderer of this node")
		c.Row(nodes.Renderer)
	}
	c.Table("Approximations of this node", "RENDERER", "SERVICES", "WANTED", "RENDERED", "WHY")
	for _, a := range nodes.Approximations {
		c.Row(a.Renderer, a.Services, a.Wanted, a.Rendered, a.Why)
	}
}

// newGetSessions returns `troupe get sessions`.
func newGetSessions(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sessions [NAMESPACE/NAME]", Short: "Show the fill level of VPP's table of NAT sessions, or the sessions of a service", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: CompleteServices,
	}
	l := New(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			path, err := ServicePath(args[0])
			if err != nil {
				return err
			}
			return l.Show(cmd, std, Fetch(path+"/sessions", nil, serviceSessionsTable))
		}
		return l.Show(cmd, std, Fetch("sessions", nil, sessionsTable))
	}
	return cmd
}

// sessionsTable prints the sessions by protocol, and the limit of a worker.
func sessionsTable(c *cli.Columns, s *api.Sessions) {
	c.Row("BUSIEST WORKER", "LIMIT", "ALARM", "READ")
	c.Row(s.BusiestWorker, s.Limit, s.Alarm, since(s.Time))
	c.Table("By protocol", "PROTOCOL", "SESSIONS", "EXPIRED")
	for _, p := range s.Protocols {
		c.Row(p.Protocol, p.Sessions, p.Expired)
	}
}

// newGetResync returns `troupe get resync`.
func newGetResync(std cli.Streams) *cobra.Command {
	return newQuery(std, "resync", "Show the progress of the renderers, and repairs", Fetch("resync", nil, resyncTable))
}

// resyncTable prints the renderers with their latest repairs, the steps of escalation so far, and
// the unhealthy parts with their next step.
func resyncTable(c *cli.Columns, state *api.Resync) {
	c.Row("RENDERER", "EPOCH", "IN SYNC", "VPP READ", "BECAUSE", "DIFFERED", "REASON")
	for _, r := range state.Renderers {
		c.Row(r.Renderer, r.Epoch, r.InSync, since(r.Read), r.Because, r.Differences, r.Reason)
	}
	c.Table("Latest repairs", "RENDERER", "FOUND", "BECAUSE", "DIFFERED", "REPAIRED", "OPERATIONS")
	for _, r := range state.Renderers {
		if r.Repair == nil {
			continue
		}
		took := "not yet"
		if end := r.Repair.Repaired; !end.IsZero() {
			took = "after " + end.Sub(r.Repair.Found).Round(time.Millisecond).String()
		}
		c.Row(r.Renderer, since(r.Repair.Found), r.Repair.Because, r.Repair.Differences, took, r.Repair.Operations)
		for _, op := range r.Repair.First {
			c.Note(op)
		}
		if more := int(r.Repair.Operations) - len(r.Repair.First); more > 0 {
			c.Note(fmt.Sprintf("and %d more: troupe events --kind render", more))
		}
	}
	c.Table("Healing", "PART", "STEP", "COUNT")
	for _, h := range state.Healing {
		c.Row(h.Part, h.Rung, h.Count)
	}
	c.Table("Unhealthy", "PART", "SINCE", "LAST STEP", "NEXT", "REASON")
	for _, i := range state.Ill {
		c.Row(i.Part, since(i.Since), i.Rung, Clock(i.Next), i.Reason)
	}
}

// newResyncCommand returns `troupe resync`.
func newResyncCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "resync", Short: "Read Kubernetes and VPP again and repair differences", Args: cobra.NoArgs,
		Long: `Read Kubernetes and VPP again, repair differences, and show them as 'troupe get resync' does. It
ends when every renderer has read VPP and is in sync; the exit code is 1 if that takes longer than
--timeout. With --method upstream it does not wait. It needs the control socket.`,
	}
	c := NewControl(cmd)
	request := api.ResyncRequest{}
	cmd.Flags().StringVar((*string)(&request.Method), "method", string(api.ResyncFull), "full, upstream = only Kubernetes, or downstream = only VPP")
	cmd.Flags().StringVar(&request.Reason, "reason", "", "reason for the journal")
	timeout := cmd.Flags().Duration("timeout", 30*time.Second, "time limit of the wait; 0 = do not wait")
	cli.CompleteFlag(cmd, "method", string(api.ResyncFull), string(api.ResyncUpstream), string(api.ResyncDownstream))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, asked := c.Client(), time.Now()
		if err := client.Post(cmd.Context(), "resync", request); err != nil {
			return err
		}
		patience := *timeout
		if request.Method == api.ResyncUpstream {
			patience = 0
		}
		state, waits, err := awaitResync(cmd.Context(), client, asked, patience)
		if err != nil {
			return err
		}
		if err := c.Out.Print(std.Out, state, func(c *cli.Columns) { resyncTable(c, state) }); err != nil || patience == 0 {
			return err
		}
		return waits
	}
	return cmd
}

// awaitResync returns the state when every renderer has read VPP after a time and is in sync. After
// patience it returns the state as it is; waits is what it has waited for, nil = nothing.
func awaitResync(ctx context.Context, c *client.Client, asked time.Time, patience time.Duration) (state *api.Resync, waits, err error) {
	for {
		state, waits = &api.Resync{}, nil
		if err := c.Get(ctx, "resync", nil, state); err != nil {
			return nil, nil, err
		}
		for _, r := range state.Renderers {
			switch {
			case !r.InSync:
				waits = fmt.Errorf("%s is not in sync: %s", r.Renderer, r.Reason)
			case r.Read.Before(asked):
				waits = fmt.Errorf("%s has not read VPP", r.Renderer)
			case r.Repair != nil && r.Repair.Repaired.IsZero():
				waits = fmt.Errorf("%s has not repaired %d differences", r.Renderer, r.Repair.Differences)
			}
		}
		if waits == nil || time.Since(asked) > patience {
			return state, waits, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("wait for the resync: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
