package agent

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/cluster"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/kube/informers"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// kubeSource makes the source that the configuration names.
func (a *Agent) kubeSource() (kube.Source, error) {
	log := a.log.With("part", "kube")
	if dir, ok := strings.CutPrefix(a.cfg.Kubernetes.Source, "files:"); ok {
		return files.New(dir, a.cfg.NodeName, log), nil
	}
	client, err := informers.NewClient(informers.ClientConfig{
		Kubeconfig: a.cfg.Kubernetes.Kubeconfig, QPS: float32(a.cfg.Kubernetes.QPS), Burst: a.cfg.Kubernetes.Burst,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	return informers.New(client, informers.Config{NodeName: a.cfg.NodeName}, log), nil
}

// nodeSync makes node sync, with an embedded etcd where asked for; nil where the node stands alone.
func (a *Agent) nodeSync(ctx context.Context) (actors.NodeSync, error) {
	var client *clientv3.Client
	var err error
	log := a.log.With("part", "cluster")
	switch a.cfg.Etcd.Mode {
	case "none":
		return nil, nil //nolint:nilnil // no node sync is a legal choice
	case "embedded":
		client, err = a.embeddedEtcd(ctx)
	default:
		client, err = cluster.NewClient(cluster.ClientConfig{
			Endpoints: a.cfg.Etcd.Endpoints, CA: a.cfg.Etcd.CA, Cert: a.cfg.Etcd.Cert, Key: a.cfg.Etcd.Key, DialTimeout: 5 * time.Second,
		})
		if err == nil {
			a.onClose("etcd client", closeWith(client))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return cluster.New(client, cluster.Config{
		Prefix: a.cfg.Etcd.Prefix, NodeName: a.cfg.NodeName, GracePeriod: a.cfg.Etcd.GracePeriod.Duration(),
	}, log), nil
}

// servingConfig takes the settings of the service semantics out of the configuration.
func servingConfig(cfg *config.Agent) (service.Config, error) {
	addresses, err := service.ParseNodePortAddresses(cfg.Services.NodePortAddresses)
	if err != nil {
		return service.Config{}, fmt.Errorf("services.nodePortAddresses: %w", err)
	}
	out := service.Config{NodePortAddresses: addresses, MasqueradeAll: cfg.Services.MasqueradeAll}
	for _, list := range []struct {
		path string
		from []string
		to   *[]netip.Prefix
	}{
		{"services.clusterCIDRs", cfg.Services.ClusterCIDRs, &out.ClusterCIDRs},
		{"services.serviceCIDRs", cfg.Services.ServiceCIDRs, &out.ServiceCIDRs},
	} {
		for _, text := range list.from {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return service.Config{}, fmt.Errorf("%s: %w", list.path, err)
			}
			*list.to = append(*list.to, prefix.Masked())
		}
	}
	return out, nil
}

// nat44Config takes the settings of the IPv4 renderer out of the configuration, which has been validated.
func nat44Config(cfg *config.Agent) nat44.Config {
	loopback, _ := netip.ParseAddr(cfg.NAT44.LoopbackIP) // "" = derived from the node's pod CIDR
	var reject []netip.Prefix
	for _, text := range cfg.Services.ServiceCIDRs {
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
			reject = append(reject, p.Masked())
		}
	}
	seconds := func(d config.Duration) uint32 { return uint32(d.Duration() / time.Second) }
	t := cfg.NAT44.Timeouts
	return nat44.Config{
		Node: cfg.NodeName, TwiceNAT: loopback, Pads: true, SessionLimit: uint32(cfg.NAT44.SessionLimit), Reject: reject,
		Timeouts: nat44.Timeouts{
			UDP: seconds(t.UDP), TCPEstablished: seconds(t.TCPEstablished), TCPTransitory: seconds(t.TCPTransitory), ICMP: seconds(t.ICMP),
		},
	}
}

// vppSocket is where VPP is reached; a simulated one is started first.
func (a *Agent) vppSocket() (string, error) {
	if a.cfg.VPP.Mode != "simulated" {
		return a.cfg.VPP.APISocket, nil
	}
	dir, err := os.MkdirTemp("", "troupe-vpp-")
	if err != nil {
		return "", err
	}
	a.onClose("socket directory", func(context.Context) error { return os.RemoveAll(dir) })
	a.cni = newSimulatedCNI()
	a.simulated = simulator.New(simulator.Options{Logger: a.log.With("part", "simulator"), AutoRestart: true, OnBoot: a.cni.boot})
	socket := filepath.Join(dir, "api.sock")
	if err := a.simulated.Listen(socket); err != nil {
		return "", err
	}
	a.onClose("simulated VPP", closeWith(a.simulated))
	return socket, nil
}
