package handlers

import (
	"fmt"
	"strings"

	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/binapi/vpe_types"

	"github.com/troupe-vpp/troupe/vpp/heap"
)

// registerVpe registers the messages about the VPP process.
func registerVpe(r Registry) {
	Read(r, showVersion)
	Read(r, showVpeSystemTime)
	Read(r, showThreads)
	Read(r, cliInband)
}

// showVersion answers with the release that the model follows.
func showVersion(c *Call, _ *vpe.ShowVersion) {
	c.Reply(&vpe.ShowVersionReply{
		Program:        "vpe",
		Version:        "25.10-release",
		BuildDate:      "2025-10-29T00:00:00",
		BuildDirectory: "simulator",
	})
}

// showVpeSystemTime answers with the time since this incarnation started.
func showVpeSystemTime(c *Call, _ *vpe.ShowVpeSystemTime) {
	c.Reply(&vpe.ShowVpeSystemTimeReply{VpeSystemTime: vpe_types.Timestamp(c.Now())})
}

// showThreads lists the main thread and the workers.
func showThreads(c *Call, _ *vlib.ShowThreads) {
	reply := &vlib.ShowThreadsReply{ThreadData: []vlib.ThreadData{{Name: "vpp_main", PID: c.Pid}}}
	for n := range c.Workers {
		reply.ThreadData = append(reply.ThreadData, vlib.ThreadData{
			ID: uint32(n + 1), Name: workerName(n), Type: "workers", CPUID: uint32(n + 1), Core: uint32(n + 1),
		})
	}
	reply.Count = uint32(len(reply.ThreadData))
	c.Reply(reply)
}

// cliInband answers the few commands that the simulated VPP has, all of which only show something.
// It accepts no abbreviations.
func cliInband(c *Call, req *vlib.CliInband) {
	reply := "unknown input `" + req.Cmd + "'\n"
	command := strings.Join(strings.Fields(req.Cmd), " ")
	if filters, is := strings.CutPrefix(command, "show nat44 sessions"); is {
		if text, ok := c.NAT.Show(filters); ok {
			reply = text
		}
	}
	switch command {
	case "show clock":
		reply = fmt.Sprintf("Time now %.6f, Thu, 01 Jan 2026 00:00:00 GMT\n", c.Now())
	case "show simulator":
		reply = c.Describe()
	case "show nat44 summary":
		reply = c.NAT.Summary()
	case heap.Command:
		reply = c.DescribeHeap()
	case "show cnat timestamp":
		reply = c.CNAT.Timestamps()
	case "show errors":
		reply = c.CNAT.Errors()
	case "show cnat snat-policy":
		reply = c.CNAT.SNAT.Show(c.NameOf)
	}
	c.Reply(&vlib.CliInbandReply{Reply: reply})
}
