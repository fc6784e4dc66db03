package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/hostroute"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// Staleness returns the limit of staleness for actors.Timing, where negative is no limit.
func (k Kubernetes) Staleness() time.Duration {
	if k.StalenessLimit == 0 {
		return -1
	}
	return k.StalenessLimit.Duration()
}

// Serving returns the settings of service handling. It fails only where Validate fails.
func (s Services) Serving() (service.Config, error) {
	addresses, err := service.ParseNodePortAddresses(s.NodePortAddresses)
	if err != nil {
		return service.Config{}, fmt.Errorf("services.nodePortAddresses: %w", err)
	}
	cfg := service.Config{NodePortAddresses: addresses, MasqueradeAll: s.MasqueradeAll, Limits: s.Limits.serving()}
	if slices.Equal(s.ClusterCIDRs, []string{ClusterCIDRsAuto}) {
		cfg.NodesPodNetworks = true
	} else if cfg.ClusterCIDRs, err = prefixes("services.clusterCIDRs", s.ClusterCIDRs); err != nil {
		return service.Config{}, err
	}
	if cfg.ServiceCIDRs, err = prefixes("services.serviceCIDRs", s.ServiceCIDRs); err != nil {
		return service.Config{}, err
	}
	if s.FollowExternalIPs() {
		return cfg, nil // the source leaves external IPs out where Kubernetes does
	}
	if cfg.ExternalIPs, err = prefixes("services.allowExternalIPs", s.AllowExternalIPs); err != nil {
		return service.Config{}, err
	}
	if cfg.ExternalIPs == nil {
		cfg.ExternalIPs = []netip.Prefix{} // none, not all
	}
	return cfg, nil
}

// ClusterCIDRsAuto is the word for the pod networks of the Nodes.
const ClusterCIDRsAuto = "auto"

// ExternalIPsAuto is the word for this rule: external IPs are served if Kubernetes serves them in
// the version of the API server.
const ExternalIPsAuto = "auto"

// FollowExternalIPs reports whether the version of the API server decides if external IPs are
// served.
func (s Services) FollowExternalIPs() bool {
	return slices.Equal(s.AllowExternalIPs, []string{ExternalIPsAuto})
}

// Keepers returns the settings of the host routes, one for each address family. It fails only where
// Validate does.
func (h HostRoute) Keepers() (all []hostroute.Config, err error) {
	if h.Interface == "" {
		return nil, nil
	}
	ports, err := hostroute.ParsePorts(h.NodePorts)
	if err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(h.Gateway, ",") {
		gateway, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || gateway.Zone() != "" {
			return nil, fmt.Errorf("%q is not an IP address", text)
		}
		all = append(all, hostroute.Config{Interface: h.Interface, Gateway: gateway.Unmap(), NodeSource: h.Source == HostRouteSourceNode, NodePorts: ports})
	}
	if len(all) > 2 || len(all) == 2 && all[0].Gateway.Is4() == all[1].Gateway.Is4() {
		return nil, fmt.Errorf("%q has more than one address of a family", h.Gateway)
	}
	return all, nil
}

// Reserved returns the ports of nodes that no service may claim: the configured ports and the ports
// of the agent's servers. It fails only where Validate fails.
func (a *Agent) Reserved() (rule.Ports, error) {
	ports := rule.Ports{}
	for i, text := range a.Services.ReservedPorts {
		p, err := rule.ParsePort(text)
		if err != nil {
			return nil, fmt.Errorf("services.reservedPorts[%d]: %w", i, err)
		}
		ports[p] = true
	}
	for _, server := range []string{a.API.HTTPAddress, a.API.HealthzBindAddress, a.API.MetricsBindAddress} {
		if at, err := netip.ParseAddrPort(server); err == nil {
			ports[rule.Port{Number: at.Port(), Proto: rule.TCP}] = true
		}
	}
	return ports, nil
}

// serving returns the limits in the words of package service.
func (l Limits) serving() service.Limits {
	return service.Limits{
		Service:   service.Size{Frontends: l.FrontendsPerService, Backends: l.BackendsPerService},
		Namespace: service.Size{Frontends: l.FrontendsPerNamespace, Backends: l.BackendsPerNamespace},
		Node:      service.Size{VPP: l.VPPMemory << 20, Agent: l.AgentMemory << 20},
	}
}

// Renderer returns the settings of the nat44 renderer on the node of this name. The routes renderer
// beside it rejects traffic that has no row. TwiceNAT is the invalid address if loopbackIP is
// empty. It fails only where Validate fails.
func (n NAT44) Renderer(node string) (nat44.Config, error) {
	cfg := nat44.Config{
		Node: node, Pads: true, Unreachable: true, OutsideAlone: !n.InsideRole, MasqueradeClashes: n.InsideRole, AllWorkers: n.AllWorkers, SessionLimit: uint32(n.SessionLimit), //nolint:gosec // Validate bounds it.
		DrainLimit: n.DrainLimit.Duration(),
		Timeouts: nat44.Timeouts{
			UDP: n.Timeouts.UDP.seconds(), TCPEstablished: n.Timeouts.TCPEstablished.seconds(),
			TCPTransitory: n.Timeouts.TCPTransitory.seconds(), ICMP: n.Timeouts.ICMP.seconds(),
		},
	}
	if n.LoopbackIP == "" {
		return cfg, nil
	}
	var err error
	if cfg.TwiceNAT, err = netip.ParseAddr(n.LoopbackIP); err != nil {
		return nat44.Config{}, fmt.Errorf("nat44.loopbackIP: %w", err)
	}
	return cfg, nil
}

// Chosen returns the configuration with a renderer in place of "auto".
func (a *Agent) Chosen(cnat bool) *Agent {
	chosen := *a
	if chosen.Renderer == RendererAuto {
		chosen.Renderer = RendererDual
		if cnat {
			chosen.Renderer = RendererCNAT
		}
	}
	return &chosen
}

// CNAT returns the settings of the cnat renderer on the node of this name; nil = it is not used.
// "auto" counts as "dual". No service may claim the reserved ports from the nodes.
func (a *Agent) CNAT(node string, reserved rule.Ports) *cnat.Config {
	if a.Renderer == RendererNAT44 {
		return nil
	}
	return &cnat.Config{Node: node, IPv4: a.Renderer == RendererCNAT, Unreachable: true, Ground: rule.Ground{Reserved: reserved}}
}

// Settings returns the settings of dynamic SNAT. It fails only where Validate does.
func (s SNAT) Settings() (external.SNAT, error) {
	out := external.SNAT{Enabled: s.Enabled, Interface: s.Interface, OverlayPorts: s.OverlayPorts}
	if s.Address == "" {
		return out, nil
	}
	var err error
	if out.Address, err = netip.ParseAddr(s.Address); err != nil {
		return external.SNAT{}, fmt.Errorf("snat.address: %w", err)
	}
	return out, nil
}

// Families returns the address families, "IPv4" and "IPv6", whose services each renderer renders.
func (a *Agent) Families() map[string][]string {
	switch a.Renderer {
	case RendererCNAT:
		return map[string][]string{RendererCNAT: {"IPv4", "IPv6"}}
	case RendererDual, RendererAuto:
		return map[string][]string{RendererNAT44: {"IPv4"}, RendererCNAT: {"IPv6"}}
	default:
		return map[string][]string{RendererNAT44: {"IPv4"}}
	}
}

// RenderersOf returns the renderers of a family.
func (a *Agent) RenderersOf(family string) (names []string) {
	for name, families := range a.Families() {
		if slices.Contains(families, family) {
			names = append(names, name)
		}
	}
	return names
}

// Housekeeping returns the settings of the session check.
func (n NAT44) Housekeeping() sessions.Config {
	return sessions.Config{
		Min: uint32(n.SessionLimit), Max: uint32(n.SessionLimitMax), //nolint:gosec // Validate bounds them.
		Interval: n.SessionCheckInterval.Duration(), EndedAfter: n.ClosedAfter.Duration(),
	}
}

// prefixes parses networks and clears their host bits.
func prefixes(path string, texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for i, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", path, i, err)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// defaultNamespace is the namespace of the manifests.
const defaultNamespace = "troupe-system"

// HasEtcd reports whether there is an etcd, external or embedded.
func (a *Agent) HasEtcd() bool {
	return a.Etcd.Mode == EtcdEmbedded || a.Etcd.Mode == EtcdExternal && len(a.Etcd.Endpoints) > 0
}

// Store returns the node store, which is not StoreAuto, and the reason for the choice.
func (a *Agent) Store() (store, why string) {
	_, files := a.Kubernetes.FilesDir()
	switch {
	case a.NodeStore.Type != StoreAuto:
		return a.NodeStore.Type, "configured"
	case a.Etcd.Mode == EtcdEmbedded:
		return StoreEtcd, "etcd is embedded"
	case a.HasEtcd():
		return StoreEtcd, "etcd has endpoints"
	case a.Etcd.Mode == EtcdNone:
		return StoreNone, "etcd.mode is none"
	case files:
		return StoreNone, "there is neither an etcd nor an API server"
	default:
		return StoreKubernetes, "etcd has no endpoints and the source is the API server"
	}
}

// StoreNamespace is the namespace of the Leases of the node store.
func (a *Agent) StoreNamespace() string {
	return cmp.Or(a.NodeStore.Namespace, os.Getenv("POD_NAMESPACE"), defaultNamespace)
}
