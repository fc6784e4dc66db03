package agent

import (
	"fmt"
	"math"
	"time"

	"github.com/troupe-vpp/troupe/actors/render"
	sessionsactor "github.com/troupe-vpp/troupe/actors/sessions"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/listening"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/kube/informers"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// kubeSource makes the configured source, with the client of the API server if it uses one.
func (a *Agent) kubeSource() (kube.Source, *apiserver.Client, error) {
	log := a.log.With("part", "kube")
	if dir, ok := a.cfg.Kubernetes.FilesDir(); ok {
		return files.New(dir, a.cfg.NodeName, log), nil, nil
	}
	serving, err := a.cfg.Services.Serving()
	if err != nil {
		return nil, nil, err
	}
	client, err := a.connectKubernetes(informers.ClientConfig{
		Kubeconfig: a.cfg.Kubernetes.Kubeconfig, Servers: a.cfg.Kubernetes.APIServer, ServiceCIDRs: serving.ServiceCIDRs,
		QPS: float32(a.cfg.Kubernetes.QPS), Burst: a.cfg.Kubernetes.Burst,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	return informers.New(client, informers.Config{
		NodeName: a.cfg.NodeName, ServiceCIDRs: len(serving.ServiceCIDRs) == 0, FollowExternalIPs: a.cfg.Services.FollowExternalIPs(),
	}, log), client, nil
}

// vppSocket returns the sockets of VPP; it starts a simulated VPP if configured.
func (a *Agent) vppSocket() (apiSocket, statsSocket string, err error) {
	if a.cfg.VPP.Mode != config.VPPSimulated {
		return a.cfg.VPP.APISocket, a.cfg.VPP.StatsSocket, nil
	}
	return a.simulateVPP()
}

// listening makes the reader of the ports on which the node listens; nil = they are not asked for,
// or VPP is not that of this machine.
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

// heapStats returns what makes a reader of the state of VPP's heap; nil = the configuration has no
// statistics socket.
func heapStats(socket string) func() render.Heap {
	if socket == "" {
		return nil
	}
	return func() render.Heap { return heap.NewStatistics(socket) }
}

// ownMemory is what the agent needs besides the frontends and backends of services, in bytes: the
// runtime, the objects of the cluster, HTTP.
const ownMemory = 100 << 20

// memoryRoom returns how many bytes services may take of a process whose garbage collector keeps to
// a limit; 0 = it has none.
func memoryRoom(limit int64) int {
	if limit == math.MaxInt64 {
		return 0
	}
	return int(max(limit-ownMemory, 1<<20))
}
