package bootstrap

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/look"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/plan"
	"github.com/troupe-vpp/troupe/bootstrap/show"
)

const planLong = `Plan shows the frontends that a node would serve, and the rows that its renderers
would install in VPP. It needs neither a cluster nor VPP. It reads the output of

  kubectl get svc,endpointslices,nodes,pods -A -o yaml

The plan and standard error list unusable objects as problems. All other objects are planned.`

// newPlanCommand returns `troupe plan`.
func newPlanCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "plan -f FILE --node-name NAME",
		Short:   "Show the frontends and rows of a node without an agent or VPP",
		Long:    planLong,
		Example: "  kubectl get svc,endpointslices,nodes,pods -A -o yaml | troupe plan -f - --node-name worker-1",
		Args:    cobra.NoArgs,
	}
	var files []string
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "file or directory with Kubernetes objects, - for standard input; repeatable")
	flags := config.AddFlags(cmd, "node-name", "node-port-addresses", "cluster-cidr", "service-cidr", "masquerade-all", "allow-external-ips",
		"reserved-ports", "renderer", "nat-loopback-ip")
	out := cli.AddFormat(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		opts, err := planOptions(flags)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return cli.Usagef("expected -f FILE (- for standard input)")
		}
		return runPlan(std, files, opts, out)
	}
	return cmd
}

// planOptions reads the configuration of a plan. Errors of flags are usage errors.
func planOptions(flags *config.Flags) (plan.Options, error) {
	doc, err := flags.Load()
	if doc == nil {
		return plan.Options{}, err
	}
	if err = config.Join(err, doc.Validate()); err != nil {
		var all config.Errors
		if errors.As(err, &all) && all.FromFlags() {
			return plan.Options{}, cli.Usagef("%s", err)
		}
		return plan.Options{}, err
	}
	opts := plan.Options{Node: doc.Agent.NodeName}
	if opts.Node == "" {
		return plan.Options{}, cli.Usagef("expected --node-name NAME, the node of the plan")
	}
	if opts.Serving, err = doc.Agent.Services.Serving(); err != nil {
		return plan.Options{}, err
	}
	if opts.NAT44, err = doc.Agent.NAT44.Renderer(opts.Node); err != nil {
		return opts, err
	}
	if opts.NAT44.Ground.Reserved, err = doc.Agent.Reserved(); err != nil {
		return opts, err
	}
	opts.CNAT = doc.Agent.CNAT(opts.Node, opts.NAT44.Ground.Reserved)
	return opts, nil
}

// runPlan prints the plan, then returns the errors of the input.
func runPlan(std cli.Streams, files []string, opts plan.Options, out *cli.Format) error {
	objects, problems, err := plan.Read(files, std.In)
	if err != nil {
		return err
	}
	report, more, err := plan.Build(objects, opts)
	problems = append(problems, more...)
	if err != nil {
		if len(problems) > 0 {
			err = errors.Join(cli.ObjectErrors(problems), err)
		}
		return err
	}
	report.Problems = show.Problems(problems)
	if err := out.Print(std.Out, report, func(c *cli.Columns) { planTable(c, report) }); err != nil {
		return err
	}
	if len(problems) > 0 {
		return cli.ObjectErrors(problems)
	}
	return nil
}

// planTable prints a plan.
func planTable(c *cli.Columns, r *plan.Report) {
	look.FrontendsTable(c, r.Frontends)
	look.HealthChecksTable(c, r.HealthChecks)
	c.Section("Rows in VPP")
	look.RowsTable(c, r.Rows)
	look.ApproximationsTable(c, r.Approximations)
	look.ProblemsTable(c, r.Problems)
}
