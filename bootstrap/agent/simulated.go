//go:build !agent

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Names of the interfaces of a simulated node besides the interfaces of pods.
const (
	UplinkInterface = "uplink0"
	HostInterface   = "host0"
	hostSubnet      = "172.30.0.1/24"
)

// simulatedCNI is the CNI of the simulated VPP: it connects the pods of the node, the node itself
// and the network outside. It follows the source of the agent, and connects everything again after
// a restart of VPP.
type simulatedCNI struct {
	server *simulator.VPP // set before the start of the actors

	mu   sync.Mutex
	vpp  *simulator.VPP
	node *messages.NodeInput
	pods map[string]bool // connected, by address
}

// newSimulatedCNI returns a CNI without a VPP. boot sets it, because VPP starts later and may
// restart.
func newSimulatedCNI() *simulatedCNI { return &simulatedCNI{pods: map[string]bool{}} }

// simulateVPP starts a simulated VPP with its CNI and returns its sockets.
func (a *Agent) simulateVPP() (apiSocket, statsSocket string, err error) {
	dir, err := os.MkdirTemp("", "troupe-vpp-")
	if err != nil {
		return "", "", err
	}
	a.onClose("socket directory", func(context.Context) error { return os.RemoveAll(dir) })
	a.cni = newSimulatedCNI()
	a.cni.server = simulator.New(simulator.Options{Logger: a.log.With("part", "simulator"), AutoRestart: true, OnBoot: a.cni.boot})
	a.onClose("simulated VPP", closeWith(a.cni.server))
	apiSocket, statsSocket = filepath.Join(dir, "api.sock"), filepath.Join(dir, "stats.sock")
	return apiSocket, statsSocket, errors.Join(a.cni.server.Listen(apiSocket), a.cni.server.ListenStats(statsSocket))
}

// boot connects everything to a VPP that has just started empty.
func (s *simulatedCNI) boot(vpp *simulator.VPP) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vpp = vpp
	clear(s.pods)
	s.connect()
}

// changed sets the node and its pods.
func (s *simulatedCNI) changed(in *messages.NodeInput) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in == nil || proto.Equal(in, s.node) {
		return
	}
	s.node = in
	s.connect()
}

// connect adds missing interfaces. The interface of a deleted pod stays until the next start of
// VPP, because no other pod gets its address so soon.
func (s *simulatedCNI) connect() {
	self := s.node.GetSelf()
	if s.vpp == nil || self == nil {
		return
	}
	if !s.pods[""] {
		s.pods[""] = s.uplink(self) == nil
	}
	for _, pod := range s.node.GetPods() {
		for _, address := range pod.GetAddresses() {
			if s.pods[address] || pod.GetHostNetwork() || slices.Contains(self.GetAddresses(), address) {
				continue
			}
			a, err := netip.ParseAddr(address)
			if err == nil {
				_, err = s.vpp.AddPod(podInterface(pod), a)
			}
			s.pods[address] = err == nil
		}
	}
}

// uplink adds the uplink, with the address of the node and the default route, and the host
// interface, for processes on the node.
func (s *simulatedCNI) uplink(self *messages.Node) error {
	address := netip.AddrFrom4([4]byte{192, 168, 16, 1})
	for _, text := range self.GetAddresses() {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
			address = a
			break
		}
	}
	subnet := netip.PrefixFrom(address, 24)
	if _, err := s.vpp.AddInterface(UplinkInterface, []netip.Prefix{subnet}, true); err != nil {
		return fmt.Errorf("connect the node: %w", err)
	}
	if err := s.vpp.DefaultRoute(UplinkInterface, gateway(subnet)); err != nil {
		return fmt.Errorf("connect the node: %w", err)
	}
	_, err := s.vpp.AddInterface(HostInterface, []netip.Prefix{netip.MustParsePrefix(hostSubnet)}, true)
	return err
}

// podInterface is the name of the interface of a pod.
func podInterface(pod *messages.Pod) string { return "tap-" + pod.GetNamespace() + "-" + pod.GetName() }

// gateway is the last address of a /24, the router of the simulated network.
func gateway(subnet netip.Prefix) netip.Addr {
	a := subnet.Addr().As4()
	a[3] = 254
	return netip.AddrFrom4(a)
}

// Statuses returns the status of all services, ordered by key, and their summaries. The values are
// shared and must not be modified.
func (a *Agent) Statuses(ctx context.Context) ([]*messages.ServiceStatus, []api.Service, error) {
	page, err := askUntil[*status.ServicesPage](ctx, a.system, address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return nil, nil, err
	}
	return page.Services, backend{agent: a}.summaries(page), nil
}

// Renderers are the names of the renderers, in the order of the tree.
func (a *Agent) Renderers() []string { return a.renderers() }

// Simulator is the simulated VPP, nil with a real one.
func (a *Agent) Simulator() *simulator.VPP {
	if a.cni == nil {
		return nil
	}
	return a.cni.server
}

// Usage counts the requests to VPP. It needs chaos. RowReads leaves out drift checks and the reads
// of Diff.
func (a *Agent) Usage() link.Usage { return a.stage.Usage() }

// Kill fails an actor, as if it had panicked.
func (a *Agent) Kill(path string) error { return a.system.Kill(path) }

// Restarts counts the restarts of an actor.
func (a *Agent) Restarts(path string) uint64 {
	state, _ := a.system.Actor(path)
	return state.Restarts
}

// Working reports whether an actor has started and handles messages.
func (a *Agent) Working(path string) bool {
	state, ok := a.system.Actor(path)
	return ok && (state.State == runtime.StateIdle || state.State == runtime.StateRunning)
}

// Pod returns the IPv4 address and the interface of the first pod of this node, by name, on the
// simulated VPP; an invalid address = there is none.
func (a *Agent) Pod() (netip.Addr, string) { return a.cni.anyPod() }

// anyPod is the first connected pod by name.
func (s *simulatedCNI) anyPod() (netip.Addr, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pods := slices.SortedFunc(slices.Values(s.node.GetPods()), func(a, b *messages.Pod) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, pod := range pods {
		for _, text := range pod.GetAddresses() {
			if a, err := netip.ParseAddr(text); err == nil && a.Is4() && s.pods[text] {
				return a, podInterface(pod)
			}
		}
	}
	return netip.Addr{}, ""
}

// Errors of an embedded etcd that ends before the agent.
var (
	errEtcdEnded   = errors.New("the embedded etcd ended")
	errUnexplained = errors.New("without an error")
)

// embeddedEtcd starts an etcd inside this process. It locks the directory at once, so that a second
// agent, started by mistake, stops before it changes anything. etcd starts in the background: a
// slow disk delays node sync only.
func (a *Agent) embeddedEtcd() (connect, error) {
	etcd, err := etcd.OpenEmbedded(etcd.EmbeddedConfig{
		Dir: a.cfg.EtcdDataDir(), NoSync: a.cfg.VPP.Mode == config.VPPSimulated, Logger: a.log.With("part", "etcd"),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := etcd.Start(ctx); err != nil {
			if ctx.Err() == nil {
				a.fail(err)
			}
			return
		}
		close(ready)
		select {
		case <-ctx.Done():
		case err := <-etcd.Err():
			a.fail(fmt.Errorf("%w: %w", errEtcdEnded, cmp.Or(err, errUnexplained)))
		}
	}()
	a.onClose("embedded etcd", func(deadline context.Context) error {
		cancel()
		select {
		case <-done:
			return etcd.Close()
		case <-deadline.Done():
			return deadline.Err()
		}
	})
	return func(ctx context.Context) (*clientv3.Client, error) {
		select {
		case <-ready:
			return etcd.Client(), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, nil
}
