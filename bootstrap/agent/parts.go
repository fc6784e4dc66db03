package agent

import (
	"math"
	"time"

	interfacesactor "github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/actors/render"
	sessionsactor "github.com/troupe-vpp/troupe/actors/sessions"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/listening"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// vppSocket returns the sockets of VPP; it starts a simulated VPP if configured.
func (a *Agent) vppSocket() (apiSocket, statsSocket string, err error) {
	if a.cfg.VPP.Mode != config.VPPSimulated {
		return a.cfg.VPP.APISocket, a.cfg.VPP.StatsSocket, nil
	}
	return a.simulateVPP()
}

// listening makes the reader of the ports on which the node listens; nil = the configuration does
// not reserve them, or VPP is simulated.
func (a *Agent) listening() func(time.Time) []string {
	if !a.cfg.Services.ReserveListening || a.cfg.VPP.Mode == config.VPPSimulated {
		return nil
	}
	return listening.New("/proc", a.log.With("part", "interfaces")).Read
}

// sessionStats makes the reader of the number of NAT sessions; nil = the configuration has no
// statistics socket.
func sessionStats(socket string) sessionsactor.Stats {
	if socket == "" {
		return nil
	}
	return sessions.NewReader(socket)
}

// otherProtocols makes the reader of the interfaces with packets that are not TCP, UDP or ICMP; nil
// = the configuration has no statistics socket.
func otherProtocols(socket string) interfacesactor.Protocols {
	if socket == "" {
		return nil
	}
	return interfaces.NewOtherProtocols(socket)
}

// sessionSigns makes the reader of hints at lost answers; nil = the configuration has no statistics
// socket.
func sessionSigns(socket string) sessionsactor.Signs {
	if socket == "" {
		return nil
	}
	return sessions.NewSignsReader(socket)
}

// heapStats makes readers of the state of VPP's heap, one for each renderer; nil = the
// configuration has no statistics socket.
func heapStats(socket string) func() render.Heap {
	if socket == "" {
		return nil
	}
	return func() render.Heap { return heap.NewStatistics(socket) }
}

// ownMemory is the memory of the agent besides the frontends and backends of services, in bytes:
// the runtime, the objects of the cluster, HTTP.
const ownMemory = 100 << 20

// memoryRoom returns the number of bytes for services in a process with this memory limit; 0 =
// there is no limit.
func memoryRoom(limit int64) int {
	if limit == math.MaxInt64 {
		return 0
	}
	return int(max(limit-ownMemory, 1<<20))
}
