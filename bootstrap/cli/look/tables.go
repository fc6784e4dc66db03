package look

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// RowsTable prints rows of VPP.
func RowsTable(c *cli.Columns, rows []api.Row) {
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

// seconds formats a number of seconds for a table; 0 is empty.
func seconds(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%ds", n)
}
