package look

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/show"
)

// RowsTable prints rows of VPP.
func RowsTable(c *cli.Columns, rows []show.Row) {
	c.Row("RENDERER", "FRONTEND", cli.Optional("SERVICE"), cli.Optional("FLAGS"), "BACKENDS", "WEIGHT", cli.Optional("AFFINITY"))
	for _, r := range rows {
		locals, weights := make([]string, len(r.Locals)), make([]string, 0, 1)
		for i, l := range r.Locals {
			locals[i] = l.Text()
			if w := strconv.FormatUint(uint64(l.Weight), 10); len(weights) == 0 || weights[len(weights)-1] != w {
				weights = append(weights, w)
			}
		}
		c.Row(r.Renderer, r.VIP, r.Service, strings.Join(r.Flags, ","), strings.Join(locals, ","), strings.Join(weights, ","),
			seconds(r.AffinitySeconds))
	}
}

// FrontendsTable prints frontends.
func FrontendsTable(c *cli.Columns, frontends []show.Frontend) {
	c.Row("FRONTEND", cli.Optional("SERVICE"), cli.Optional("PORT"), "KIND", "FROM", "ACTION", "ENDPOINTS", cli.Optional("AFFINITY"), cli.Optional("MASQUERADE"), cli.Optional("SOURCES"))
	for _, f := range frontends {
		c.Row(f.Frontend, f.Service, f.Port, f.Kind, f.From, f.Action, strings.Join(f.Endpoints, ","), seconds(f.AffinitySeconds),
			strings.Join(f.MasqueradeFrom, ","), strings.Join(f.AllowSources, ","))
	}
}

// HealthChecksTable prints health-check node ports under a title, if there are any.
func HealthChecksTable(c *cli.Columns, checks []show.HealthCheck) {
	if len(checks) == 0 {
		return
	}
	c.Section("Health checks")
	c.Row("SERVICE", "PORT", "LOCAL ENDPOINTS", "STATUS")
	for _, h := range checks {
		c.Row(h.Service, h.Port, h.LocalEndpoints, h.Status)
	}
}

// ApproximationsTable prints approximations under a title, if there are any.
func ApproximationsTable(c *cli.Columns, approximations []show.Approximation) {
	if len(approximations) == 0 {
		return
	}
	c.Section("Approximations")
	c.Row("FRONTEND", "SERVICE", "WANTED", "RENDERED", "WHY")
	for _, a := range approximations {
		c.Row(a.Frontend, a.Service, a.Wanted, a.Rendered, a.Why)
	}
}

// ProblemsTable prints the unusable parts of the input under a title, if there are any.
func ProblemsTable(c *cli.Columns, problems []show.Problem) {
	if len(problems) == 0 {
		return
	}
	c.Section("Invalid input")
	c.Row("SOURCE", "KIND", "OBJECT", "FIELD", "MESSAGE")
	for _, p := range problems {
		c.Row(p.Source, p.Kind, p.Object, p.Field, p.Message)
	}
}

// seconds formats a number of seconds for a table; 0 is empty.
func seconds(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%ds", n)
}
