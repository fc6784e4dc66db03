package bootstrap

import (
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// newGetService returns `troupe get service`.
func newGetService(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service NAMESPACE/NAME",
		Short: "Show one service: frontends, rendered rows, rows in VPP",
		Args:  cobra.ExactArgs(1), ValidArgsFunction: completeServices,
	}
	l := newLook(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		namespace, name, err := serviceName(args[0])
		if err != nil {
			return err
		}
		path := "services/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
		return l.show(cmd, std, fetch(path, nil, serviceTable))
	}
	return cmd
}

// serviceName splits the argument of a command.
func serviceName(arg string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(arg, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", usagef("%q is not the name of a service: expected NAMESPACE/NAME", arg)
	}
	return namespace, name, nil
}

// serviceTable prints a service. Desired rows and rows in VPP are separate tables, because they
// differ while a change is pending.
func serviceTable(c *columns, s *api.ServiceDetail) {
	c.row("Service:", s.Key)
	c.row("State:", s.State)
	c.row("Generation:", s.Generation)
	c.row("Changed:", clock(s.Changed))
	if s.NotServed != "" {
		c.row("Not served:", s.NotServed)
	}
	if s.Error != "" {
		c.row("Error:", s.Error)
	}
	c.section("Wanted")
	frontendsTable(c, s.Wanted)
	healthChecksTable(c, s.HealthChecks)
	c.section("Rendered")
	rowsTable(c, s.Rendered)
	c.section("In VPP")
	rowsTable(c, s.InVPP)
	approximationsTable(c, s.Approximations)
	if len(s.Conflicts) > 0 {
		c.section("Owned by other services")
		c.row("FRONTEND", "OWNER")
		for _, one := range s.Conflicts {
			c.row(one.Frontend, one.Owner)
		}
	}
	problemsTable(c, s.Problems)
}
