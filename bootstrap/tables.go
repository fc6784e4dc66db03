package bootstrap

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/show"
)

// rowsTable prints rows of VPP.
func rowsTable(c *columns, rows []show.Row) {
	c.row("RENDERER", "VIP", optional("SERVICE"), optional("FLAGS"), "BACKENDS", "WEIGHT", optional("AFFINITY"))
	for _, r := range rows {
		locals, weights := make([]string, len(r.Locals)), make([]string, 0, 1)
		for i, l := range r.Locals {
			locals[i] = l.Address
			if w := strconv.FormatUint(uint64(l.Weight), 10); len(weights) == 0 || weights[len(weights)-1] != w {
				weights = append(weights, w)
			}
		}
		c.row(r.Renderer, r.VIP, r.Service, strings.Join(r.Flags, ","), strings.Join(locals, ","), strings.Join(weights, ","),
			seconds(r.AffinitySeconds))
	}
}

// frontendsTable prints frontends.
func frontendsTable(c *columns, frontends []show.Frontend) {
	c.row("FRONTEND", "SERVICE", "PORT", "KIND", "FROM", "ACTION", "ENDPOINTS", "AFFINITY", "MASQUERADE", "SOURCES")
	for _, f := range frontends {
		c.row(f.Frontend, f.Service, f.Port, f.Kind, f.From, f.Action, strings.Join(f.Endpoints, ","), seconds(f.AffinitySeconds),
			strings.Join(f.MasqueradeFrom, ","), strings.Join(f.AllowSources, ","))
	}
}

// healthChecksTable prints health-check node ports under a title, if there are any.
func healthChecksTable(c *columns, checks []show.HealthCheck) {
	if len(checks) == 0 {
		return
	}
	c.section("Health checks")
	c.row("SERVICE", "PORT", "LOCAL ENDPOINTS", "STATUS")
	for _, h := range checks {
		c.row(h.Service, h.Port, h.LocalEndpoints, h.Status)
	}
}

// approximationsTable prints approximations under a title, if there are any.
func approximationsTable(c *columns, approximations []show.Approximation) {
	if len(approximations) == 0 {
		return
	}
	c.section("Approximations")
	c.row("FRONTEND", "SERVICE", "WANTED", "RENDERED", "WHY")
	for _, a := range approximations {
		c.row(a.Frontend, a.Service, a.Wanted, a.Rendered, a.Why)
	}
}

// problemsTable prints the unusable parts of the input under a title, if there are any.
func problemsTable(c *columns, problems []show.Problem) {
	if len(problems) == 0 {
		return
	}
	c.section("Invalid input")
	c.row("SOURCE", "KIND", "OBJECT", "FIELD", "MESSAGE")
	for _, p := range problems {
		c.row(p.Source, p.Kind, p.Object, p.Field, p.Message)
	}
}

// seconds formats a number of seconds for a table; 0 is empty.
func seconds(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%ds", n)
}
