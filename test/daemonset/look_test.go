package daemonset_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// rows waits until VPP of each of the nodes holds exactly these rows of the service, as "vip ->
// local,local".
func (c *cluster) rows(service string, nodes []int, want ...string) {
	c.Helper()
	slices.Sort(want)
	for _, on := range nodes {
		controlplane.Eventually(c, "rows of "+service+" on "+c.Nodes[on].Name, func() string {
			have, problem := c.rowsOf(on, service)
			if problem == "" && !slices.Equal(have, want) {
				problem = fmt.Sprintf("have %q, want %q", have, want)
			}
			return problem
		})
	}
}

// rowsOf returns the rows of a service that the agent of a node reads in VPP, sorted.
func (c *cluster) rowsOf(on int, service string) (rows []string, problem string) {
	var detail struct {
		InVPP []struct {
			VIP    string
			Locals []struct{ Address string }
		}
	}
	if problem := c.Get(on, "/api/v1/services/"+service, &detail); problem != "" {
		if strings.HasPrefix(problem, "404") {
			return nil, ""
		}
		return nil, problem
	}
	for _, row := range detail.InVPP {
		var locals []string
		for _, local := range row.Locals {
			locals = append(locals, local.Address)
		}
		slices.Sort(locals)
		rows = append(rows, row.VIP+" -> "+strings.Join(locals, ","))
	}
	slices.Sort(rows)
	return rows, ""
}

var counters = regexp.MustCompile(`mutating (\d+)\nrows (\d+)\n`)

// counted asks the simulator of a node how many requests for a change it has had and how many rows
// it has.
func (c *cluster) counted(on int) (count [2]int) {
	c.Helper()
	vpp := c.vpp[on]
	before := len(counters.FindAllString(vpp.Output(), -1))
	vpp.Signal(syscall.SIGUSR1)
	controlplane.Eventually(c, "counters of VPP", func() string {
		all := counters.FindAllStringSubmatch(vpp.Output(), -1)
		if len(all) == before {
			return "no answer"
		}
		for i := range count {
			count[i], _ = strconv.Atoi(all[len(all)-1][i+1])
		}
		return ""
	})
	return count
}
