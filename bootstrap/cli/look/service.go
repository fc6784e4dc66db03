package look

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// newGetService returns `troupe get service`.
func newGetService(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service NAMESPACE/NAME",
		Short: "Show one service: frontends, rendered rows, rows in VPP",
		Args:  cobra.ExactArgs(1), ValidArgsFunction: CompleteServices,
	}
	l := New(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := ServicePath(args[0])
		if err != nil {
			return err
		}
		return l.Show(cmd, std, Fetch(path, nil, serviceTable))
	}
	return cmd
}

// ServicePath returns the resource of the service NAMESPACE/NAME in the API of the agent.
func ServicePath(arg string) (string, error) {
	namespace, name, ok := strings.Cut(arg, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", cli.Usagef("%q is not the name of a service: expected NAMESPACE/NAME", arg)
	}
	return "services/" + escapePath(arg), nil
}

// serviceTable prints a service. Desired rows and rows in VPP are separate tables, because they
// differ while a change is pending.
func serviceTable(c *cli.Columns, s *api.ServiceDetail) {
	c.Row("Service:", s.Key)
	c.Row("Served:", fmt.Sprintf("%s: %s", s.Served, s.Served.Why()))
	c.Row("State:", s.State)
	c.Row("Changed:", api.Ago(s.Changed))
	if s.NotServed != "" {
		c.Row("Not served:", s.NotServed)
	}
	if s.Error != "" {
		c.Row("Error:", s.Error)
	}
	c.Section("Wanted")
	c.Table("", s.Wanted)
	c.Table("Health checks", s.HealthChecks)
	c.Section("Rendered")
	RowsTable(c, s.Rendered)
	title := "In VPP"
	if !s.Read.IsZero() {
		title += ", as read " + api.Ago(s.Read) + " or written since"
	}
	c.Section(title)
	RowsTable(c, s.InVPP)
	c.Table("Approximations", s.Approximations)
	c.Table("Owned by other services", s.Conflicts)
	c.Table("Invalid input", s.Problems)
}
