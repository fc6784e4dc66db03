package bootstrap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/look"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/plan"
)

const planLong = `Plan shows the frontends that a node would serve, and the rows that its renderers
would install in VPP. It needs neither a cluster nor VPP. It reads the output of

  kubectl get svc,endpointslices,nodes,pods -A -o yaml

It prints a line for each service; with a name, with -o wide, or in another format also the
frontends, the rows, routes and access lists, and the reasons for each difference. The plan and standard error list unusable objects as problems. All other objects are planned.`

// newPlanCommand returns `troupe plan`.
func newPlanCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "plan -f FILE --node-name NAME [NAMESPACE/NAME]",
		Short:   "Show the frontends and rows of a node without an agent or VPP",
		Long:    planLong,
		Example: "  kubectl get svc,endpointslices,nodes,pods -A -o yaml | troupe plan -f - --node-name worker-1",
		Args:    cobra.MaximumNArgs(1),
	}
	var files []string
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "file or directory with Kubernetes objects, - for standard input; repeatable")
	flags := config.AddFlags(cmd, "node-name", "node-port-addresses", "cluster-cidr", "service-cidr", "masquerade-all", "allow-external-ips",
		"reserved-ports", "renderer", "nat-loopback-ip")
	namespace := cmd.Flags().StringP("namespace", "n", "", "only services of this namespace")
	out := cli.AddFormat(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		name := strings.Join(args, "")
		if len(args) > 0 {
			if _, err := look.ServicePath(name); err != nil {
				return err
			}
		}
		opts, err := planOptions(flags)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return cli.Usagef("expected -f FILE (- for standard input)")
		}
		return runPlan(std, files, opts, out, name, *namespace)
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

// runPlan prints the plan of a service or of a namespace, "" = of all, then returns the errors of
// the input.
func runPlan(std cli.Streams, files []string, opts plan.Options, out *cli.Format, name, namespace string) error {
	objects, problems, err := plan.Read(files, std.In)
	if err != nil {
		return err
	}
	report, more, err := plan.Build(objects, opts)
	problems = append(problems, more...)
	if err == nil {
		report = report.Only(func(key string) bool {
			return (name == "" || key == name) && (namespace == "" || strings.HasPrefix(key, namespace+"/"))
		})
		if name != "" && len(report.Services) == 0 {
			err = fmt.Errorf("service %s: not in the input", name)
		}
	}
	if err != nil {
		if len(problems) > 0 {
			err = errors.Join(cli.ObjectErrors(problems), err)
		}
		return err
	}
	report.Problems = api.Problems(problems)
	if err := out.Print(std.Out, report, func(c *cli.Columns) { planTable(c, report, name != "" || *out == "wide") }); err != nil {
		return err
	}
	if len(problems) > 0 {
		return cli.ObjectErrors(problems)
	}
	return nil
}

// planTable prints a plan: a line for each service, and the details.
func planTable(c *cli.Columns, r *plan.Report, details bool) {
	c.Paragraph(r.Summary() + "\n")
	if len(r.Services) > 0 {
		c.Section("Services")
		c.Row("SERVICE", "PLAN", "FRONTENDS", "ENDPOINTS", "WHY")
	}
	for _, s := range r.Services {
		why := strings.Join(s.Why[:min(len(s.Why), 1)], "")
		if more := len(s.Why) - 1; more > 0 {
			why += fmt.Sprintf("; and %d more", more)
		}
		c.Row(s.Service, s.Plan, s.Frontends, s.Endpoints, why)
	}
	if details {
		c.Table("Frontends", r.Frontends)
		c.Table("Health checks", r.HealthChecks)
		if len(r.Rows) > 0 {
			c.Section("Rows in VPP")
			look.RowsTable(c, r.Rows)
		}
		if len(r.Beside) > 0 {
			c.Section("Routes and access lists in VPP")
			c.Row("OBJECT", cli.Optional("SERVICE"), "TEXT")
		}
		for _, b := range r.Beside {
			c.Row(b.Object, b.Service, b.Text)
		}
		c.Table("Approximations", r.Approximations)
	}
	c.Table("Invalid input", r.Problems)
}
