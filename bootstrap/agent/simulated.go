//go:build !agent

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
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
