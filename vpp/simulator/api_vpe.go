package simulator

import (
	"strings"

	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/binapi/vpe_types"
)

// registerVpe registers the messages about the VPP process.
func registerVpe(r registry) {
	read(r, showVersion)
	read(r, showVpeSystemTime)
	read(r, showThreads)
	read(r, cliInband)
}

func showVersion(c *call, _ *vpe.ShowVersion) {
	c.reply(&vpe.ShowVersionReply{
		Program:        "vpe",
		Version:        "25.10-release",
		BuildDate:      "2025-10-29T00:00:00",
		BuildDirectory: "simulator",
	})
}

// showVpeSystemTime answers with the time since this incarnation started.
func showVpeSystemTime(c *call, _ *vpe.ShowVpeSystemTime) {
	c.reply(&vpe.ShowVpeSystemTimeReply{VpeSystemTime: vpe_types.Timestamp(c.now())})
}

func showThreads(c *call, _ *vlib.ShowThreads) {
	reply := &vlib.ShowThreadsReply{ThreadData: []vlib.ThreadData{{Name: "vpp_main", PID: c.vpp.inc.pid}}}
	for n := range c.workers {
		reply.ThreadData = append(reply.ThreadData, vlib.ThreadData{
			ID: uint32(n + 1), Name: workerName(n), Type: "workers", CPUID: uint32(n + 1), Core: uint32(n + 1),
		})
	}
	reply.Count = uint32(len(reply.ThreadData))
	c.reply(reply)
}

// cliInband answers the few commands that the simulated VPP has, all of which
// only show something. It knows no abbreviations.
func cliInband(c *call, req *vlib.CliInband) {
	reply := "unknown input `" + req.Cmd + "'\n"
	switch strings.Join(strings.Fields(req.Cmd), " ") {
	case "show simulator":
		reply = c.describe()
	case "show nat44 summary":
		reply = c.nat.summary()
	}
	c.reply(&vlib.CliInbandReply{Reply: reply})
}
